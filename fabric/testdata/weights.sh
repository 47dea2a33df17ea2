# e0.1, edge switch of leaf-spine:leaves=3,spines=2,hosts=1,fabric-rate=20,e0.0-a0.1=10, 10.0.1.1
ip link set lo up
ip link set p0 up # to h0.1.2 10.0.1.2
ip link set p1 up # to a0.0 10.255.0.1
ip link set p2 up # to a0.1 10.255.1.1
ip address replace 10.0.1.1/32 dev lo
sysctl -w net.ipv4.ip_forward=1
sysctl -w net.ipv4.conf.all.rp_filter=0
sysctl -w net.ipv4.conf.default.rp_filter=0
sysctl -w net.ipv4.conf.p0.rp_filter=0
sysctl -w net.ipv4.conf.p1.rp_filter=0
sysctl -w net.ipv4.conf.p2.rp_filter=0
sysctl -w net.ipv4.conf.all.ignore_routes_with_linkdown=1
sysctl -w net.ipv4.conf.default.ignore_routes_with_linkdown=1
sysctl -w net.ipv4.conf.p0.ignore_routes_with_linkdown=1
sysctl -w net.ipv4.conf.p1.ignore_routes_with_linkdown=1
sysctl -w net.ipv4.conf.p2.ignore_routes_with_linkdown=1
sysctl -w net.ipv4.fib_multipath_hash_policy=3
sysctl -w net.ipv4.fib_multipath_hash_fields=0x37
sysctl -w net.ipv4.fib_multipath_hash_seed=5 || true # not in every kernel
ip route replace 10.0.1.2/32 via 10.0.1.2 dev p0 onlink proto 87
ip route replace 10.0.1.130/32 via 10.0.1.2 dev p0 onlink proto 87
ip route replace 10.255.0.1/32 via 10.255.0.1 dev p1 onlink proto 87
ip route replace 10.255.1.1/32 via 10.255.1.1 dev p2 onlink proto 87
ip route replace unreachable 10.0.1.0/24 proto 87 metric 4096
ip route replace default proto 87 nexthop via 10.255.0.1 dev p1 onlink nexthop via 10.255.1.1 dev p2 onlink
ip route replace 10.0.0.0/24 proto 87 nexthop via 10.255.0.1 dev p1 weight 2 onlink nexthop via 10.255.1.1 dev p2 weight 1 onlink
