# c1.2, core switch of vl2:d0=2,d1=4,d2=4,hosts=2, 10.255.1.2
ip link set lo up
ip link set p0 up # to a0.0 10.254.0.1
ip link set p1 up # to a0.2 10.254.2.1
ip link set p2 up # to a0.1 10.254.1.1
ip link set p3 up # to a0.3 10.254.3.1
ip address replace 10.255.1.2/32 dev lo
ip address replace 10.255.2.2/32 dev lo
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
sysctl -w net.ipv4.fib_multipath_hash_seed=18 || true # not in every kernel
ip route replace blackhole 10.0.0.0/8 proto 87 metric 4096
ip route replace 10.0.0.0/24 proto 87 nexthop via 10.254.0.1 dev p0 onlink nexthop via 10.254.1.1 dev p2 onlink
ip route replace 10.0.1.0/24 proto 87 nexthop via 10.254.0.1 dev p0 onlink nexthop via 10.254.1.1 dev p2 onlink
ip route replace 10.0.2.0/24 proto 87 nexthop via 10.254.2.1 dev p1 onlink nexthop via 10.254.3.1 dev p3 onlink
ip route replace 10.0.3.0/24 proto 87 nexthop via 10.254.2.1 dev p1 onlink nexthop via 10.254.3.1 dev p3 onlink
ip route replace 10.0.0.0/24 table 5800 via 10.254.0.1 dev p0 onlink proto 87
ip route replace 10.0.1.0/24 table 5800 via 10.254.0.1 dev p0 onlink proto 87
ip route replace 10.0.2.0/24 table 5800 via 10.254.2.1 dev p1 onlink proto 87
ip route replace 10.0.3.0/24 table 5800 via 10.254.2.1 dev p1 onlink proto 87
ip route replace 10.0.0.0/24 table 5801 via 10.254.1.1 dev p2 onlink proto 87
ip route replace 10.0.1.0/24 table 5801 via 10.254.1.1 dev p2 onlink proto 87
ip route replace 10.0.2.0/24 table 5801 via 10.254.3.1 dev p3 onlink proto 87
ip route replace 10.0.3.0/24 table 5801 via 10.254.3.1 dev p3 onlink proto 87
ip rule add priority 5760 fwmark 0x1/0x7ff lookup 5800 protocol 87 || true # it may exist
ip rule add priority 5760 fwmark 0x2/0x7ff lookup 5801 protocol 87 || true # it may exist
# Decapsulation of IP-in-IP; needs the kernel module ipip. The device accepts any
# inner source: let no IP-in-IP into the fabric from outside (CVE-2025-23018).
ip link add name weft-decap0 type ipip local 10.255.1.2 remote any ttl 64
ip link set weft-decap0 up
ip link add name weft-decap1 type ipip local 10.255.2.2 remote any ttl 64
ip link set weft-decap1 up
ip rule add priority 5760 iif weft-decap0 lookup 5800 protocol 87 || true # it may exist
ip rule add priority 5760 iif weft-decap1 lookup 5801 protocol 87 || true # it may exist
