package daemon

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"weft/flowcell"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
)

// forger makes segments arrive at a host's uplink, as if from the network, at a rate if it can: a
// program that the kernel runs again and again (BPF_PROG_TEST_RUN) changes one frame and has a
// copy of it come in (bpf_clone_redirect). So it costs the host's processors, as a sender in the
// same machine does.
type forger struct {
	prog  *ebpf.Program
	frame []byte
	sent  atomic.Int64
	stop  atomic.Bool
	done  chan error
}

// forgery says what of a segment is drawn at random for each. The checksums stay right: the
// complement of each random word stands in the IP ID or in the payload.
type forgery struct {
	name  string
	flow  bool    // the low half of the source and the source port; else they are the connection's
	near  bool    // the second of a flow's two segments begins 156 bytes behind the first's end; else anywhere
	flags [2]byte // of the two
}

const (
	ethernetHeader = 14 // bytes
	forgedFrame    = ethernetHeader + 20 + 20 + forgedData
	forgedData     = 100
	forgedBurst    = 200
	forgedAhead    = 1 << 16 // 256 in the order of the network, as a little-endian machine reads it
	cloneIngress   = 1       // BPF_F_INGRESS
)

// program draws, and has two segments of each flow arrive, with a hole between them.
func (f forgery) program(index int) asm.Instructions {
	const ip, tcp, data = ethernetHeader, ethernetHeader + 20, ethernetHeader + 40
	open := func() asm.Instructions {
		return asm.Instructions{
			asm.LoadMem(asm.R2, asm.R6, 76, asm.Word), asm.LoadMem(asm.R3, asm.R6, 80, asm.Word), // data, data_end
			asm.Mov.Reg(asm.R4, asm.R2), asm.Add.Imm(asm.R4, forgedFrame), asm.JGT.Reg(asm.R4, asm.R3, "end"),
		}
	}
	p := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1), asm.FnGetPrandomU32.Call(), asm.Mov.Reg(asm.R7, asm.R0)}
	if f.flow {
		p = append(p, open()...)
		p = append(p,
			asm.StoreMem(asm.R2, ip+14, asm.R7, asm.Half), asm.Mov.Reg(asm.R1, asm.R7), asm.Xor.Imm(asm.R1, 0xffff),
			asm.StoreMem(asm.R2, ip+4, asm.R1, asm.Half), asm.StoreMem(asm.R2, data, asm.R1, asm.Half),
			asm.RSh.Imm(asm.R7, 16),
			asm.StoreMem(asm.R2, tcp, asm.R7, asm.Half), asm.Xor.Imm(asm.R7, 0xffff), asm.StoreMem(asm.R2, data+2, asm.R7, asm.Half))
	}
	for i, flags := range f.flags {
		if i == 0 || !f.near {
			p = append(p, asm.FnGetPrandomU32.Call(), asm.Mov.Reg(asm.R8, asm.R0), asm.And.Imm(asm.R8, ^forgedAhead))
		} else {
			p = append(p, asm.Or.Imm(asm.R8, forgedAhead))
		}
		p = append(p, open()...)
		p = append(p,
			asm.StoreImm(asm.R2, tcp+13, int64(flags), asm.Byte), asm.StoreImm(asm.R2, data+9, int64(^flags), asm.Byte),
			asm.StoreMem(asm.R2, tcp+4, asm.R8, asm.Word), asm.Mov.Reg(asm.R1, asm.R8), asm.Xor.Imm(asm.R1, -1), asm.StoreMem(asm.R2, data+4, asm.R1, asm.Word),
			asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, int32(index)), asm.Mov.Imm(asm.R3, cloneIngress), asm.FnCloneRedirect.Call())
	}
	return append(p, asm.Mov.Imm(asm.R0, 0).WithSymbol("end"), asm.Return())
}

// forge begins to forge, as from a connection's other end, so many segments a second.
func (n *network) forge(host string, f forgery, rate int, from, to *net.TCPAddr) *forger {
	n.Helper()
	g := &forger{done: make(chan error, 1)}
	n.do(host, func() error {
		dev, err := net.InterfaceByName("p0")
		if err != nil {
			return err
		}
		tcp, id, source := make([]byte, 20+forgedData), uint16(0), from.AddrPort().Addr().Unmap().As4()
		binary.BigEndian.PutUint16(tcp, uint16(from.Port))
		binary.BigEndian.PutUint16(tcp[2:], uint16(to.Port))
		tcp[12], tcp[13], tcp[14], tcp[29] = 5<<4, f.flags[0], 1, ^f.flags[0]
		binary.BigEndian.PutUint32(tcp[24:], 1<<32-1) // the complement of sequence number 0
		if f.flow {
			source = n.node("h1.0.2").Addr.As4()
			source[2], source[3], tcp[0], tcp[1] = 0, 0, 0, 0
			binary.BigEndian.PutUint32(tcp[20:], 1<<32-1)
			id = 1<<16 - 1
		}
		pseudo := slices.Concat(source[:], to.IP.To4(), []byte{0, 6, 0, byte(len(tcp))}, tcp)
		binary.BigEndian.PutUint16(tcp[16:], ^kerneltest.OnesSum(pseudo))
		ip := kerneltest.IPv4{Protocol: 6, TTL: 64, Src: netip.AddrFrom4(source), Dst: to.AddrPort().Addr().Unmap()}.Bytes(tcp)
		binary.BigEndian.PutUint16(ip[4:], id)
		ip[10], ip[11] = 0, 0
		binary.BigEndian.PutUint16(ip[10:], ^kerneltest.OnesSum(ip[:20]))
		g.frame = slices.Concat(dev.HardwareAddr, make([]byte, 6), []byte{8, 0}, ip)
		g.prog, err = ebpf.NewProgram(&ebpf.ProgramSpec{Name: "forge", Type: ebpf.SchedCLS, License: "GPL", Instructions: f.program(dev.Index)})
		return err
	})
	go func() {
		g.done <- n.lab.Do(n.node(host).ID, func() error {
			for began := time.Now(); !g.stop.Load(); {
				time.Sleep(time.Duration(g.sent.Load()*int64(time.Second)/int64(rate)) - time.Since(began))
				if _, err := g.prog.Run(&ebpf.RunOptions{Data: g.frame, Repeat: forgedBurst}); err != nil {
					return err
				}
				g.sent.Add(2 * forgedBurst)
			}
			return nil
		})
	}()
	return g
}

func (g *forger) end(t *testing.T) {
	t.Helper()
	g.stop.Store(true)
	if err := <-g.done; err != nil {
		t.Error(err)
	}
	g.prog.Close()
}

// Under forged segments, what a host with the order program remembers and diverts stays bounded, and
// the bytes of a connection arrive as they were. WEFT_FORGED_ROUNDS asks for more than one round of
// a second (WEFT_FORGED_SECONDS). What the connection loses is then logged for weft and for the
// kernel alone, in turn, at one rate, if the machine makes so many (WEFT_FORGED_RATE).
func TestOrder_forgedSegments(t *testing.T) {
	slowtest.Unraced(t) // a kernel's program meets them
	rounds, seconds := fromEnv("WEFT_FORGED_ROUNDS", 1), fromEnv("WEFT_FORGED_SECONDS", 1)
	i := newIntegrity(t)
	for _, f := range []forgery{
		{"random five-tuples", true, false, [2]byte{flowcell.FlagACK, flowcell.FlagACK}},
		{"random five-tuples with a SYN and a hole", true, true, [2]byte{flowcell.FlagSYN, flowcell.FlagACK}},
		{"SYNs", true, false, [2]byte{flowcell.FlagSYN, flowcell.FlagSYN}},
		{"the connection's five-tuple", false, false, [2]byte{flowcell.FlagACK, flowcell.FlagACK}},
	} {
		t.Run(f.name, func(t *testing.T) {
			i := &integrity{network: i.network.of(t), from: i.from, to: i.to}
			for range rounds {
				for _, weft := range []bool{false, true} {
					if weft || rounds > 1 {
						i.flooded(t, f, weft, time.Duration(seconds)*time.Second)
					}
				}
			}
		})
	}
}

func (i *integrity) flooded(t *testing.T, f forgery, weft bool, d time.Duration) {
	var both daemons
	what := "kernel alone"
	if weft {
		both, what = i.run(integrityPaths[1].config), "weft"
	}
	s := i.stream()
	measure := func() float64 {
		at, began := s.sent.Load(), time.Now()
		time.Sleep(d)
		return float64(s.sent.Load()-at) * 8 / time.Since(began).Seconds() / 1e6
	}
	quiet := measure()
	to := s.p.b.LocalAddr().(*net.TCPAddr)
	g := i.forge(i.to, f, fromEnv("WEFT_FORGED_RATE", 100_000), s.p.b.RemoteAddr().(*net.TCPAddr), to)
	began := time.Now()
	during := measure()
	rate := float64(g.sent.Load()) / time.Since(began).Seconds()
	text := ""
	if weft {
		st := both[1].status()
		text = fmt.Sprintf("; memory %s, seen %s, diverted %s, strays %s, over budget %s, crowded %s, frames %s, held flows %s, missed %s", both[1].memory(), st["order.seen"], st["order.diverted"],
			st["order.strays"], st["order.over_budget"], st["order.crowded"], st["dataplane.frames"], st["dataplane.handover.flows"], st["dataplane.handover.missed"])
		// Each flow without a socket that is held has cost a packet of the budget.
		flows, most := number(st, "dataplane.handover.flows"), 64*runtime.NumCPU()*int(time.Since(began)>>24+2)
		if flows > min(most+16, 1<<16) {
			t.Errorf("%d flows are held, want at most %d", flows, most)
		}
		switch strays, over := number(st, "order.strays"), number(st, "order.over_budget"); {
		case !f.near && f.flags[0] == flowcell.FlagACK && strays == 0:
			t.Errorf("of %d guesses none is a stray", g.sent.Load())
		case f.near && st["order.diverted"] == "0" && over == 0:
			t.Error("no hole was seen")
		}
	}
	g.end(t)
	s.end.Store(true)
	if err := <-s.done; err != nil {
		t.Errorf("%s: %v", what, err)
	}
	t.Logf("%s: %.0f forged segments a second; %.0f Mbit/s before, %.0f during%s", what, rate, quiet, during, text)
	if g.sent.Load() == 0 {
		t.Error("nothing was forged")
	}
	for _, c := range both {
		if c != nil {
			c.end(syscall.SIGTERM)
		}
	}
}

// memory is what a daemon has in memory.
func (c *child) memory() string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.Join(strings.Fields(line), " ")
}
