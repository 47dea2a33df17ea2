# c1.1, core switch of fat-tree:k=4, 10.4.1.1
ip link set lo up
ip link set p0 up # to a0.2 10.0.2.1
ip link set p1 up # to a1.2 10.1.2.1
ip link set p2 up # to a2.2 10.2.2.1
ip link set p3 up # to a3.2 10.3.2.1
ip address replace 10.4.1.1/32 dev lo
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
sysctl -w net.ipv4.fib_multipath_hash_seed=33 || true # not in every kernel
ip route replace blackhole 10.0.0.0/8 proto 87 metric 4096
ip route replace 10.0.0.0/16 via 10.0.2.1 dev p0 onlink proto 87
ip route replace 10.1.0.0/16 via 10.1.2.1 dev p1 onlink proto 87
ip route replace 10.2.0.0/16 via 10.2.2.1 dev p2 onlink proto 87
ip route replace 10.3.0.0/16 via 10.3.2.1 dev p3 onlink proto 87
# Decapsulation of IP-in-IP; needs the kernel module ipip. The device accepts any
# inner source: let no IP-in-IP into the fabric from outside (CVE-2025-23018).
ip link add name weft-decap0 type ipip local 10.4.1.1 remote any ttl 64
ip link set weft-decap0 up
