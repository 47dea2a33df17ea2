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
# weft also has a program here that keeps hosts from sending with labels what is
# not their own, which other filters can do:
# p0: from [10.1.0.2 10.1.0.130] only
# p1: from [10.1.0.3 10.1.0.131] only
# Labels in MPLS; needs the kernel module mpls_router.
sysctl -w net.mpls.platform_labels=20
sysctl -w net.mpls.conf.p0.input=1
sysctl -w net.mpls.conf.p1.input=1
sysctl -w net.mpls.conf.p2.input=1
sysctl -w net.mpls.conf.p3.input=1
ip -f mpls route replace 18 via inet 10.1.2.1 dev p2 proto 87
ip -f mpls route replace 19 via inet 10.1.3.1 dev p3 proto 87
