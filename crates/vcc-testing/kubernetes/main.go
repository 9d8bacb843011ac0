// The control plane and the clients that tests of Kubernetes use, in one program: the name by which it
// is called says which. One program, because they share most of their code, and compiling it is what
// takes the time.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	helm "helm.sh/helm/v4/pkg/cmd"
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "helm":
		os.Exit(runHelm())
	case "kube-apiserver":
		os.Exit(cli.Run(app.NewAPIServerCommand()))
	case "kubectl":
		util.CheckErr(cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()))
	case "signing-key":
		util.CheckErr(writeSigningKey())
	default:
		fmt.Fprintf(os.Stderr, "%s: call it etcd, helm, kube-apiserver, kubectl or signing-key\n", name)
		os.Exit(2)
	}
}

// As helm's own main package does.
func runHelm() int {
	command, err := helm.NewRootCmd(os.Stdout, os.Args[1:], helm.SetupLogging)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	err = command.Execute()
	if failed, ok := errors.AsType[helm.CommandError](err); ok {
		return failed.ExitCode
	}
	if err != nil {
		return 1
	}
	return 0
}

// A key by which an API server signs the tokens of service accounts, for its standard output.
func writeSigningKey() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	bytes, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return pem.Encode(os.Stdout, &pem.Block{Type: "EC PRIVATE KEY", Bytes: bytes})
}
