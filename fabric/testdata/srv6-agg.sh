# a2.2, aggregation switch of fat-tree:k=4, 10.2.2.1
ip link set lo up
ip link set p0 up # to e2.0 10.2.0.1
ip link set p1 up # to e2.1 10.2.1.1
ip link set p2 up # to c1.1 10.4.1.1
ip link set p3 up # to c1.2 10.4.1.2
ip address replace 10.2.2.1/32 dev lo
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
sysctl -w net.ipv4.fib_multipath_hash_seed=29 || true # not in every kernel
ip route replace 10.2.0.0/24 via 10.2.0.1 dev p0 onlink proto 87
ip route replace 10.2.1.0/24 via 10.2.1.1 dev p1 onlink proto 87
ip route replace 10.4.1.1/32 via 10.4.1.1 dev p2 onlink proto 87
ip route replace 10.4.1.2/32 via 10.4.1.2 dev p3 onlink proto 87
ip route replace blackhole 10.2.0.0/16 proto 87 metric 4096
ip route replace default proto 87 nexthop via 10.4.1.1 dev p2 onlink nexthop via 10.4.1.2 dev p3 onlink
# Labels in IPv6: IANA's block of SRv6 SIDs; End.X of NEXT-C-SID needs Linux 6.6.
ip -6 address replace fe80::7765:6674:a02:201/64 dev p0 nodad
ip -6 address replace fe80::7765:6674:a02:201/64 dev p1 nodad
ip -6 address replace fe80::7765:6674:a02:201/64 dev p2 nodad
ip -6 address replace fe80::7765:6674:a02:201/64 dev p3 nodad
ip -6 address replace fd77:6566:7400::a02:201/128 dev lo nodad
ip -6 route replace fd77:6566:7400::a02:1/128 via fe80::7765:6674:a02:1 dev p0 onlink proto 87
ip -6 route replace fd77:6566:7400::a02:101/128 via fe80::7765:6674:a02:101 dev p1 onlink proto 87
ip -6 route replace fd77:6566:7400::a04:101/128 via fe80::7765:6674:a04:101 dev p2 onlink proto 87
ip -6 route replace fd77:6566:7400::a04:102/128 via fe80::7765:6674:a04:102 dev p3 onlink proto 87
ip -6 route replace unreachable 5f00::/16 proto 87 metric 4096
ip -6 route replace 5f00:100::/24 encap seg6local action End.X nh6 fd77:6566:7400::a02:1 flavors next-csid lblen 16 nflen 8 count dev p0 proto 87 metric 1024
ip -6 route replace 5f00:200::/24 encap seg6local action End.X nh6 fd77:6566:7400::a02:101 flavors next-csid lblen 16 nflen 8 count dev p1 proto 87 metric 1024
ip -6 route replace 5f00:300::/24 encap seg6local action End.X nh6 fd77:6566:7400::a04:101 flavors next-csid lblen 16 nflen 8 count dev p2 proto 87 metric 1024
ip -6 route replace 5f00:400::/24 encap seg6local action End.X nh6 fd77:6566:7400::a04:102 flavors next-csid lblen 16 nflen 8 count dev p3 proto 87 metric 1024
ip -6 route replace 5f00:fe00::/128 encap seg6local action End.DX4 nh4 0.0.0.0 count dev p0 proto 87 metric 1024
ip -6 route replace 5f00:fe00::/128 encap seg6local action End.DX4 nh4 0.0.0.0 count dev p1 proto 87 metric 1025
ip -6 route replace 5f00:fe00::/128 encap seg6local action End.DX4 nh4 0.0.0.0 count dev p2 proto 87 metric 1026
ip -6 route replace 5f00:fe00::/128 encap seg6local action End.DX4 nh4 0.0.0.0 count dev p3 proto 87 metric 1027
# weft also has a program here that carries congestion marks inside where labels end.
# Decapsulation of IP-in-IP; needs the kernel module ipip. The device accepts any
# inner source: let no IP-in-IP into the fabric from outside (CVE-2025-23018).
ip link add name weft-decap0 type ipip local 10.2.2.1 remote any ttl 64
ip link set weft-decap0 up
