package hostprog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// FreeLeftPaced frees the connections of the calling thread's network namespace that a Pacer
// has left limited because its process was killed. It returns how many. A rate that a
// connection's program had set itself is lost: nobody knows it any more. There must be no Pacer
// in the namespace.
//
// It first asks the kernel which there are, and loads the program only if there are any, so it
// is cheap as a rule. Where the kernel does not tell (it lacks INET_DIAG) and cannot run the
// program either, there can be none. It needs what KeepPacer needs, and no more than
// CAP_NET_ADMIN if there are none.
func FreeLeftPaced() (int, error) {
	left, err := leftPaced()
	if err == nil && left == 0 {
		return 0, nil
	}
	p, err2 := loadPacer()
	if err2 != nil {
		if err != nil {
			return 0, nil
		}
		return 0, fmt.Errorf("%d connections are limited as by a run that was killed, and stay so: %w", left, err2)
	}
	home, err := kernel.OpenHome()
	if err != nil {
		return 0, errors.Join(err, p.close())
	}
	p.home = &home
	return left, errors.Join(p.sweep(), p.close())
}

// Rates of a Pacer have these last bits (OURS of bpf/pace.c).
const (
	paceMark     = 0x3a7
	paceMarkMask = 0x3ff
)

// diagInfo is INET_DIAG_INFO of linux/inet_diag.h: struct tcp_info.
const diagInfo = 2

// tcpDiag is struct inet_diag_req_v2 (sock_diag(7)): all connections of a family with their
// struct tcp_info. The kernel need not walk its listeners.
type tcpDiag struct{ family uint8 }

func (tcpDiag) Len() int { return 56 }

func (r tcpDiag) Serialize() []byte {
	const timeWait, listen = 6, 10 // linux/tcp_states.h
	b := make([]byte, r.Len())
	b[0], b[1], b[2] = r.family, unix.IPPROTO_TCP, 1<<(diagInfo-1)
	binary.NativeEndian.PutUint32(b[4:], ^uint32(1<<timeWait|1<<listen))
	return b
}

// leftPaced returns how many connections have a Pacer's rate.
func leftPaced() (n int, err error) {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} { // whose sockets may have peers of IPv4
		req := nl.NewNetlinkRequest(nl.SOCK_DIAG_BY_FAMILY, unix.NLM_F_DUMP)
		req.AddData(tcpDiag{family})
		err := req.ExecuteIter(unix.NETLINK_INET_DIAG, nl.SOCK_DIAG_BY_FAMILY, func(msg []byte) bool {
			if rate := highestOf(msg); rate < 1<<32-1 && rate&paceMarkMask == paceMark {
				n++
			}
			return true
		})
		if err != nil {
			return 0, kernel.Explain(fmt.Errorf("list of TCP connections: %w", err))
		}
	}
	return n, nil
}

// highestOf returns a connection's SO_MAX_PACING_RATE from struct inet_diag_msg and what
// follows it, 0 if it is not there.
func highestOf(msg []byte) uint64 {
	const length = 72 // of struct inet_diag_msg
	const at = unsafe.Offsetof(unix.TCPInfo{}.Max_pacing_rate)
	if len(msg) < length {
		return 0
	}
	attributes, err := kernel.ParseAttrs(msg[length:])
	if err != nil {
		return 0
	}
	for _, a := range attributes {
		if a.Attr.Type == diagInfo && len(a.Value) >= int(at)+8 {
			return binary.NativeEndian.Uint64(a.Value[at:])
		}
	}
	return 0
}
