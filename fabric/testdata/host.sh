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
ip route replace unreachable 10.0.0.130/32 proto 87 metric 4096
ip route replace default via 10.0.0.1 dev p0 onlink proto 87 src 10.0.0.2
