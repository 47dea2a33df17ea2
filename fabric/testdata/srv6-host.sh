# h0.0.2, host of fat-tree:k=4, 10.0.0.2
ip link set lo up
ip link set p0 up # to e0.0 10.0.0.1
ip address replace 10.0.0.2/32 dev p0
sysctl -w net.ipv4.ip_forward=1
sysctl -w net.ipv4.conf.all.rp_filter=0
sysctl -w net.ipv4.conf.default.rp_filter=0
sysctl -w net.ipv4.conf.p0.rp_filter=0
sysctl -w net.ipv4.conf.all.ignore_routes_with_linkdown=1
sysctl -w net.ipv4.conf.default.ignore_routes_with_linkdown=1
sysctl -w net.ipv4.conf.p0.ignore_routes_with_linkdown=1
sysctl -w net.ipv6.conf.all.forwarding=1
sysctl -w net.ipv6.conf.lo.disable_ipv6=0
sysctl -w net.ipv6.conf.p0.disable_ipv6=0
sysctl -w net.ipv6.conf.p0.seg6_enabled=0 || true # not in every kernel
ip route replace unreachable 10.0.0.130/32 proto 87 metric 4096
ip route replace default via 10.0.0.1 dev p0 onlink proto 87 src 10.0.0.2
# Labels in IPv6: IANA's block of SRv6 SIDs; End.X of NEXT-C-SID needs Linux 6.6.
ip -6 address replace fe80::7765:6674:a00:2/64 dev p0 nodad
ip -6 address replace fd77:6566:7400::a00:2/128 dev p0 nodad
ip -6 route replace 5f00::/16 via fe80::7765:6674:a00:1 dev p0 onlink proto 87 src fd77:6566:7400::a00:2
