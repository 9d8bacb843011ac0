{{/* Labels of all objects. */}}
{{- define "vcc.labels" -}}
app.kubernetes.io/name: vcc
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{/* Where probes find the server, which may listen on the node's loopback alone. */}}
{{- define "vcc.probeHost" -}}
{{- $host := regexReplaceAll ":[0-9]+$" .Values.metrics.listen "" | trimPrefix "[" | trimSuffix "]" -}}
{{- if eq $host "0.0.0.0" }}127.0.0.1{{ else if eq $host "::" }}::1{{ else }}{{ $host }}{{ end -}}
{{- end }}

{{- define "vcc.port" -}}
{{- regexFind "[0-9]+$" .Values.metrics.listen -}}
{{- end }}

{{/* Prometheus comes from another node. */}}
{{- define "vcc.requireReachable" -}}
{{- if regexMatch "^(off$|127[.]|\\[::1\\])" .Values.metrics.listen }}
{{- fail (printf "metrics.listen: %s is for the node alone, so Prometheus cannot scrape it: listen at 0.0.0.0:9644, or leave metrics.annotations and metrics.podMonitor.enabled false" .Values.metrics.listen) }}
{{- end }}
{{- end }}
