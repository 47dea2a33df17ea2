# e1.0, edge switch of fat-tree:k=4, 10.1.0.1
ip link set lo up
ip link set p0 up # to h1.0.2 10.1.0.2
ip link set p1 up # to h1.0.3 10.1.0.3
ip link set p2 up # to a1.2 10.1.2.1
ip link set p3 up # to a1.3 10.1.3.1
ip address replace 10.1.0.1/32 dev lo
sysctl -w net.ipv4.ip_forward=1
sysctl -w net.ipv4.conf.all.rp_filter=0
sysctl -w net.ipv4.conf.default.rp_filter=0
sysctl -w net.ipv4.conf.p0.rp_filter=0
sysctl -w net.ipv4.conf.p1.rp_filter=0
sysctl -w net.ipv4.conf.p2.rp_filter=0
sysctl -w net.ipv4.conf.p3.rp_filter=0
sysctl -w net.ipv4.conf.all.ignore_routes_with_linkdown=1
sysctl -w net.ipv4.conf.default.ignore_routes_with_linkdown=1
sysctl -w net.ipv4.conf.p0.ignore_routes_with_linkdown=1
sysctl -w net.ipv4.conf.p1.ignore_routes_with_linkdown=1
sysctl -w net.ipv4.conf.p2.ignore_routes_with_linkdown=1
sysctl -w net.ipv4.conf.p3.ignore_routes_with_linkdown=1
sysctl -w net.ipv6.conf.all.forwarding=1
sysctl -w net.ipv6.conf.lo.disable_ipv6=0
sysctl -w net.ipv6.conf.p0.disable_ipv6=0
sysctl -w net.ipv6.conf.p0.seg6_enabled=0 || true # not in every kernel
sysctl -w net.ipv6.conf.p1.disable_ipv6=0
sysctl -w net.ipv6.conf.p1.seg6_enabled=0 || true # not in every kernel
sysctl -w net.ipv6.conf.p2.disable_ipv6=0
sysctl -w net.ipv6.conf.p2.seg6_enabled=0 || true # not in every kernel
sysctl -w net.ipv6.conf.p3.disable_ipv6=0
sysctl -w net.ipv6.conf.p3.seg6_enabled=0 || true # not in every kernel
sysctl -w net.ipv4.fib_multipath_hash_policy=3
sysctl -w net.ipv4.fib_multipath_hash_fields=0x37
sysctl -w net.ipv4.fib_multipath_hash_seed=19 || true # not in every kernel
ip route replace 10.1.0.2/32 via 10.1.0.2 dev p0 onlink proto 87
ip route replace 10.1.0.130/32 via 10.1.0.2 dev p0 onlink proto 87
ip route replace 10.1.0.3/32 via 10.1.0.3 dev p1 onlink proto 87
ip route replace 10.1.0.131/32 via 10.1.0.3 dev p1 onlink proto 87
ip route replace 10.1.2.1/32 via 10.1.2.1 dev p2 onlink proto 87
ip route replace 10.1.3.1/32 via 10.1.3.1 dev p3 onlink proto 87
ip route replace 10.4.1.1/32 via 10.1.2.1 dev p2 onlink proto 87
ip route replace 10.4.1.2/32 via 10.1.2.1 dev p2 onlink proto 87
ip route replace 10.4.2.1/32 via 10.1.3.1 dev p3 onlink proto 87
ip route replace 10.4.2.2/32 via 10.1.3.1 dev p3 onlink proto 87
ip route replace unreachable 10.1.0.0/24 proto 87 metric 4096
ip route replace default proto 87 nexthop via 10.1.2.1 dev p2 onlink nexthop via 10.1.3.1 dev p3 onlink
# Labels in IPv6: IANA's block of SRv6 SIDs; End.X of NEXT-C-SID needs Linux 6.6.
ip -6 address replace fe80::7765:6674:a01:1/64 dev p0 nodad
ip -6 address replace fe80::7765:6674:a01:1/64 dev p1 nodad
ip -6 address replace fe80::7765:6674:a01:1/64 dev p2 nodad
ip -6 address replace fe80::7765:6674:a01:1/64 dev p3 nodad
ip -6 address replace fd77:6566:7400::a01:1/128 dev lo nodad
ip -6 route replace fd77:6566:7400::a01:2/128 via fe80::7765:6674:a01:2 dev p0 onlink proto 87
ip -6 route replace fd77:6566:7400::a01:3/128 via fe80::7765:6674:a01:3 dev p1 onlink proto 87
ip -6 route replace fd77:6566:7400::a01:201/128 via fe80::7765:6674:a01:201 dev p2 onlink proto 87
ip -6 route replace fd77:6566:7400::a01:301/128 via fe80::7765:6674:a01:301 dev p3 onlink proto 87
ip -6 route replace unreachable 5f00::/16 proto 87 metric 4096
ip -6 route replace 5f00:300::/24 encap seg6local action End.X nh6 fd77:6566:7400::a01:201 flavors next-csid lblen 16 nflen 8 count dev p2 proto 87 metric 1024
ip -6 route replace 5f00:400::/24 encap seg6local action End.X nh6 fd77:6566:7400::a01:301 flavors next-csid lblen 16 nflen 8 count dev p3 proto 87 metric 1024
ip -6 route replace 5f00:fe00::/128 encap seg6local action End.DX4 nh4 0.0.0.0 count dev p0 proto 87 metric 1024
ip -6 route replace 5f00:fe00::/128 encap seg6local action End.DX4 nh4 0.0.0.0 count dev p1 proto 87 metric 1025
ip -6 route replace 5f00:fe00::/128 encap seg6local action End.DX4 nh4 0.0.0.0 count dev p2 proto 87 metric 1026
ip -6 route replace 5f00:fe00::/128 encap seg6local action End.DX4 nh4 0.0.0.0 count dev p3 proto 87 metric 1027
# weft also has a program here that carries congestion marks inside where labels end.
# weft also has a program here that keeps hosts from sending with labels what is
# not their own, which other filters can do:
# p0: from [10.1.0.2 10.1.0.130] only
# p1: from [10.1.0.3 10.1.0.131] only
