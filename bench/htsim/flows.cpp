// Plays a list of TCP flows over csg-htsim's fat-tree, and prints what became of each.
// compare.py builds it with csg-htsim's library and runs it.
//
//   flows NODES RATE_MBIT DELAY_US QUEUE_PACKETS WINDOW_PACKETS SCAN_US END_MS SEED < FLOWS
//
// A line of FLOWS has sender, receiver and packets of a flow, which begins at 0. A packet has
// 1,500 bytes. Full queues drop what comes. SCAN_US is how often csg-htsim looks for timeouts. A line of what it prints has the packets
// that were acknowledged, and the milliseconds until the last was, or -1 if it was not.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <vector>

#include "config.h"
#include "eventlist.h"
#include "fat_tree_topology.h"
#include "network.h"
#include "tcp.h"

using namespace std;

static const int packetBytes = 1500;

EventList eventlist;

// Source is a TCP that remembers when its last packet was acknowledged.
class Source : public TcpSrc {
public:
    Source(EventList &e, uint64_t packets, uint32_t windowPackets) : TcpSrc(NULL, NULL, e), _end(-1) {
        // csg-htsim's numbers begin with 1, and it sends until it is beyond _flow_size + 1.
        _last = packets * packetBytes + 1;
        _flow_size = packets * packetBytes - 1;
        _maxcwnd = windowPackets * packetBytes;
    }
    void receivePacket(Packet &p) {
        TcpSrc::receivePacket(p);
        if (_end < 0 && _last_acked >= _last)
            _end = timeAsMs(eventlist().now());
    }
    uint64_t packets() { return _last_acked < 1 ? 0 : (_last_acked - 1) / packetBytes; }
    double end() { return _end; }
private:
    uint64_t _last;
    double _end;
};

int main(int argc, char **argv) {
    if (argc != 9) {
        cerr << "usage: flows NODES RATE_MBIT DELAY_US QUEUE_PACKETS WINDOW_PACKETS SCAN_US END_MS SEED < FLOWS" << endl;
        return 2;
    }
    uint32_t nodes = atoi(argv[1]), windowPackets = atoi(argv[5]);
    // What csg-htsim tells of its fabric, of timeouts and of flows is in the way.
    streambuf *out = cout.rdbuf();
    ofstream none("/dev/null");
    cout.rdbuf(none.rdbuf());

    Packet::set_packet_size(packetBytes);
    srand(atoi(argv[8]));
    srandom(atoi(argv[8]));
    eventlist.setEndtime(timeFromMs(atof(argv[7])));
    // A queue of kind ECN drops at the tail. It marks, too, which plain TCP ignores.
    FatTreeTopology *fabric = new FatTreeTopology(nodes, speedFromMbps(atof(argv[2])), memFromPkt(atof(argv[4])), NULL,
                                                  &eventlist, NULL, ECN, timeFromUs(atof(argv[3])), 0);
    if (fabric->no_of_nodes() != nodes) {
        cerr << "a fat-tree of csg-htsim has no " << nodes << " hosts" << endl;
        return 2;
    }
    TcpRtxTimerScanner scanner(timeFromUs(atof(argv[6])), eventlist);

    vector<Source *> sources;
    uint32_t from, to;
    uint64_t packets;
    while (cin >> from >> to >> packets) {
        Source *source = new Source(eventlist, packets, windowPackets);
        TcpSink *sink = new TcpSink();
        source->set_dst(to);
        sink->set_dst(from);
        scanner.registerTcp(*source);
        vector<const Route *> *there = fabric->get_paths(from, to), *back = fabric->get_paths(to, from);
        Route *routeThere = new Route(*there->at(rand() % there->size()));
        Route *routeBack = new Route(*back->at(rand() % back->size()));
        routeThere->push_back(sink);
        routeBack->push_back(source);
        source->connect(*routeThere, *routeBack, *sink, 0);
        sources.push_back(source);
        for (size_t i = 0; i < there->size(); i++) delete there->at(i);
        for (size_t i = 0; i < back->size(); i++) delete back->at(i);
        delete there;
        delete back;
    }
    while (eventlist.doNextEvent()) {
    }
    cout.rdbuf(out);
    for (size_t i = 0; i < sources.size(); i++)
        cout << sources[i]->packets() << " " << sources[i]->end() << "\n";
    return 0;
}
