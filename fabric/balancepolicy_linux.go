package fabric

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
)

// heedsTheHash is the value of hashPolicy that the programs need.
const heedsTheHash = "1"

// formerMap is a map that is bound to weft_balance, with what hashPolicy was before, plus 1.
const formerMap = "weft_former"

func bindFormer(prog *ebpf.Program) (*ebpf.Map, error) {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: formerMap, Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		return nil, kernel.Explain(fmt.Errorf("eBPF map: %w", err))
	}
	if err := prog.BindMap(m); err != nil {
		m.Close()
		return nil, kernel.Explain(fmt.Errorf("eBPF map bound to a program (Linux 5.10): %w", err))
	}
	return m, nil
}

// formerPolicy is what hashPolicy was before the programs that are attached to the ports; ""
// if none is.
func formerPolicy(h *netlink.Handle, ports []netlink.Link) (former string, err error) {
	for _, port := range ports {
		id, err := kernel.BalanceFilter.Program(h, port)
		if errors.Is(err, kernel.ErrUplinkGone) {
			continue
		}
		if err != nil {
			return "", err
		}
		if id == 0 {
			continue
		}
		m, err := kernel.MapOf(id, formerMap)
		if err != nil {
			return "", err
		}
		defer m.Close()
		return readFormer(m)
	}
	return "", nil
}

// readFormer reads a record; "" if there is nothing in it.
func readFormer(record *ebpf.Map) (former string, err error) {
	var value uint32
	if err := record.Lookup(uint32(0), &value); err != nil || value == 0 {
		return "", err
	}
	return strconv.Itoa(int(value - 1)), nil
}

// keepPolicy keeps and returns the value that is to be restored: that of the programs before,
// or else the present one. It comes before the programs are attached, and setPolicy after
// that, so that a crash at any time leaves what knows the value.
func (b *Balance) keepPolicy(former string) (kept string, err error) {
	now, err := kernel.ReadSysctl(hashPolicy)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("the kernel has no multipath routes (kernel option IP_ROUTE_MULTIPATH)")
	}
	if err != nil {
		return "", kernel.Explain(fmt.Errorf("sysctl %s: %w", hashPolicy, err))
	}
	if former != "" && now == heedsTheHash {
		now = former
	}
	return now, b.keepFormer(now)
}

// setPolicy has the kernel heed hashes.
func setPolicy() error {
	_, _, err := kernel.SetSysctl(kernel.Sysctl{Key: hashPolicy, Value: heedsTheHash})
	if err != nil {
		return kernel.Explain(fmt.Errorf("sysctl -w %s=%s: %w", hashPolicy, heedsTheHash, err))
	}
	return nil
}

func (b *Balance) keepFormer(value string) error {
	n, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return fmt.Errorf("sysctl %s: %w", hashPolicy, err)
	}
	return b.in.Maps[formerMap].Put(uint32(0), uint32(n+1))
}

// repairPolicy sets it again if somebody has changed it. What they have set is what is
// restored in the end.
func (b *Balance) repairPolicy() (mended []string, err error) {
	was, err := kernel.ReadSysctl(hashPolicy)
	if err != nil || was == heedsTheHash {
		return nil, kernel.Explain(err)
	}
	if err := b.keepFormer(was); err != nil {
		return nil, err
	}
	if err := setPolicy(); err != nil {
		return nil, err
	}
	return []string{fmt.Sprintf("set %s to %s, which was %s", hashPolicy, heedsTheHash, was)}, nil
}

// restorePolicy puts the former value back, unless somebody else has changed it meanwhile.
func restorePolicy(former string) error {
	if former == "" {
		return nil
	}
	now, err := kernel.ReadSysctl(hashPolicy)
	if err != nil || now != heedsTheHash {
		return kernel.Explain(err)
	}
	_, _, err = kernel.SetSysctl(kernel.Sysctl{Key: hashPolicy, Value: former})
	return kernel.Explain(err)
}

// HeedsBalance reports whether the kernel heeds what the programs choose, in the network
// namespace of the calling thread.
func HeedsBalance() bool {
	now, err := kernel.ReadSysctl(hashPolicy)
	return err == nil && now == heedsTheHash
}

// HashFiveTuple has the kernel's multipath routes hash the five-tuple, as a NodePlan of a
// switch has it, in the network namespace of the calling thread.
func HashFiveTuple() error {
	_, err := new(Report).SetSysctls(fiveTuple())
	return err
}
