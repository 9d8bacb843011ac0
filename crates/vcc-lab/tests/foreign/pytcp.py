# A guest with PyTCP, behind the TAP device whose descriptor it inherits as 3: fetches
# http://198.51.100.2/body and prints its SHA-256. It is 192.0.2.1, its next hop 192.0.2.2.
import asyncio
import hashlib

from pmd_net_addr import Ip4Address, Ip4IfAddr, MacAddress
from pmd_pytcp import socket, stack
from pmd_pytcp.socket import AddressFamily, SocketType
from pmd_pytcp.stack.route import RouteProtocol

TAP = 3
# It looks for another owner of its address for a second instead of seven.
SYSCTLS = {"arp.probe_num": 1, "arp.announce_wait": 1, "arp.announce_num": 1}


async def main():
    stack.init(sysctls=SYSCTLS)
    stack.add_interface(
        fd=TAP,
        layer=stack.InterfaceLayer.L2,
        mac_address=MacAddress("02:00:00:00:00:01"),
        interface_name="tap",
        ip4_host=Ip4IfAddr("192.0.2.1/24"),
        ip6_support=False,
    )
    stack.route.replace_default(gateway=Ip4Address("192.0.2.2"), protocol=RouteProtocol.STATIC)
    await stack.start()
    while not stack.local_ip4_hosts():
        await asyncio.sleep(0.05)
    connection = socket.socket(AddressFamily.INET4, SocketType.STREAM)
    await connection.connect(("198.51.100.2", 80))
    await connection.send(b"GET /body HTTP/1.0\r\n\r\n")
    answer = bytearray()
    while data := await connection.recv(1 << 16):
        answer += data
    print(hashlib.sha256(answer.split(b"\r\n\r\n", 1)[1]).hexdigest(), flush=True)


asyncio.run(main())
