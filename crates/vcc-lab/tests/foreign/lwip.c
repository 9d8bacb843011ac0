/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A guest with lwIP, behind the TAP device whose descriptor it inherits as 3.
 *
 *	lwip MTU listen|connect send|receive
 *
 * It is 192.0.2.1, its next hop 192.0.2.2 and its peer 198.51.100.2; the port is 5001. It sends or
 * receives for as long as it is let. To be linked with Debian's liblwip, in whose configuration
 * there are neither timestamps nor SACK.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lwip/api.h>
#include <lwip/etharp.h>
#include <lwip/netif.h>
#include <lwip/tcpip.h>
#include <netif/ethernet.h>

enum { TAP = 3, PORT = 5001, FRAME_MAX_BYTES = 2048, CHUNK_BYTES = 1 << 14 };

static u16_t mtu;

static void fail(const char *what)
{
	fprintf(stderr, "lwip: %s\n", what);
	exit(1);
}

static err_t device_sends(struct netif *netif, struct pbuf *frame)
{
	char bytes[FRAME_MAX_BYTES];
	u16_t length = pbuf_copy_partial(frame, bytes, sizeof(bytes), 0);

	(void)netif;
	return write(TAP, bytes, length) == length ? ERR_OK : ERR_IF;
}

static err_t device_begins(struct netif *netif)
{
	static const u8_t address[] = { 2, 0, 0, 0, 0, 1 };

	memcpy(netif->hwaddr, address, sizeof(address));
	netif->hwaddr_len = sizeof(address);
	netif->mtu = mtu;
	netif->name[0] = 't';
	netif->name[1] = 'p';
	netif->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_LINK_UP;
	netif->output = etharp_output;
	netif->linkoutput = device_sends;
	return ERR_OK;
}

static void device_receives(void *arg)
{
	struct netif *netif = arg;
	char bytes[FRAME_MAX_BYTES];

	for (;;) {
		ssize_t length = read(TAP, bytes, sizeof(bytes));

		if (length <= 0)
			fail("the device is gone");
		struct pbuf *frame = pbuf_alloc(PBUF_RAW, (u16_t)length, PBUF_RAM);

		if (!frame)
			continue; /* lost, as on any wire */
		pbuf_take(frame, bytes, (u16_t)length);
		if (netif->input(frame, netif) != ERR_OK)
			pbuf_free(frame);
	}
}

static struct netconn *open_connection(const char *how)
{
	struct netconn *conn = netconn_new(NETCONN_TCP);
	ip_addr_t peer;

	if (!conn)
		fail("no connection");
	if (!strcmp(how, "connect")) {
		IP_ADDR4(&peer, 198, 51, 100, 2);
		if (netconn_connect(conn, &peer, PORT) != ERR_OK)
			fail("the peer does not answer");
		return conn;
	}
	struct netconn *accepted;

	if (netconn_bind(conn, IP_ADDR_ANY, PORT) != ERR_OK || netconn_listen(conn) != ERR_OK ||
	    netconn_accept(conn, &accepted) != ERR_OK)
		fail("nobody connects");
	return accepted;
}

static void send_all(struct netconn *conn)
{
	static char chunk[CHUNK_BYTES];

	while (netconn_write(conn, chunk, sizeof(chunk), NETCONN_NOCOPY) == ERR_OK)
		;
}

static void receive_all(struct netconn *conn)
{
	struct pbuf *data;

	while (netconn_recv_tcp_pbuf(conn, &data) == ERR_OK)
		pbuf_free(data);
}

int main(int argc, char **argv)
{
	static struct netif netif;
	ip4_addr_t address, mask, gateway;

	if (argc != 4)
		fail("usage: lwip MTU listen|connect send|receive");
	mtu = (u16_t)atoi(argv[1]);
	tcpip_init(NULL, NULL);
	IP4_ADDR(&address, 192, 0, 2, 1);
	IP4_ADDR(&mask, 255, 255, 255, 0);
	IP4_ADDR(&gateway, 192, 0, 2, 2);
	LOCK_TCPIP_CORE();
	if (!netif_add(&netif, &address, &mask, &gateway, NULL, device_begins, tcpip_input))
		fail("no card");
	netif_set_default(&netif);
	netif_set_up(&netif);
	UNLOCK_TCPIP_CORE();
	sys_thread_new("device", device_receives, &netif, 0, 0);
	struct netconn *conn = open_connection(argv[2]);

	if (!strcmp(argv[3], "send"))
		send_all(conn);
	else
		receive_all(conn);
	return 0;
}
