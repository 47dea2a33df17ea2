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

// heedsTheHash is the value of a family's setting that the programs need.
const heedsTheHash = "1"

// hashPolicies are the families' settings. A kernel without IPv6 has one of both.
var hashPolicies = [...]string{hashPolicy, "net.ipv6.fib_multipath_hash_policy"}

// policies are values of hashPolicies; "" is none.
type policies [len(hashPolicies)]string

// formerMap is a map that is bound to weft_balance, with what hashPolicies were before, plus 1.
const formerMap = "weft_former"

func bindFormer(prog *ebpf.Program) (*ebpf.Map, error) {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: formerMap, Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: uint32(len(hashPolicies))})
	if err != nil {
		return nil, kernel.Explain(fmt.Errorf("eBPF map: %w", err))
	}
	if err := prog.BindMap(m); err != nil {
		m.Close()
		return nil, kernel.Explain(fmt.Errorf("eBPF map bound to a program (Linux 5.10): %w", err))
	}
	return m, nil
}

// formerPolicy is what hashPolicies were before the programs that are attached to the ports;
// none if none is.
func formerPolicy(h *netlink.Handle, ports []netlink.Link) (former policies, err error) {
	for _, port := range ports {
		id, err := kernel.BalanceFilter.Program(h, port)
		if errors.Is(err, kernel.ErrUplinkGone) {
			continue
		}
		if err != nil {
			return former, err
		}
		if id == 0 {
			continue
		}
		m, err := kernel.MapOf(id, formerMap)
		if err != nil {
			return former, err
		}
		defer m.Close()
		return readFormer(m)
	}
	return former, nil
}

// readFormer reads a record. That of a version without IPv6 has an entry less.
func readFormer(record *ebpf.Map) (former policies, err error) {
	for i := range former {
		var value uint32
		err := record.Lookup(uint32(i), &value)
		if i > 0 && errors.Is(err, ebpf.ErrKeyNotExist) {
			break
		}
		if err != nil {
			return former, err
		}
		if value != 0 {
			former[i] = strconv.Itoa(int(value - 1))
		}
	}
	return former, nil
}

// presentPolicies reads the settings.
func presentPolicies() (now policies, err error) {
	for i, key := range hashPolicies {
		now[i], err = kernel.ReadSysctl(key)
		switch absent := errors.Is(err, fs.ErrNotExist); {
		case absent && i == 0:
			return now, errors.New("the kernel has no multipath routes (kernel option IP_ROUTE_MULTIPATH)")
		case absent:
			now[i] = ""
		case err != nil:
			return now, kernel.Explain(fmt.Errorf("sysctl %s: %w", key, err))
		}
	}
	return now, nil
}

// keepPolicy keeps and returns the values that are to be restored: those of the programs
// before, or else the present ones. It comes before the programs are attached, and setPolicy
// after that, so that a crash at any time leaves what knows the values.
func (b *Balance) keepPolicy(former policies) (kept policies, err error) {
	now, err := presentPolicies()
	if err != nil {
		return kept, err
	}
	for i := range now {
		if former[i] != "" && now[i] == heedsTheHash {
			now[i] = former[i]
		}
		if err := b.keepFormer(i, now[i]); err != nil {
			return now, err
		}
	}
	return now, nil
}

// setPolicy has the kernel heed hashes.
func setPolicy() error {
	now, err := presentPolicies()
	if err != nil {
		return err
	}
	for i, key := range hashPolicies {
		if now[i] == "" {
			continue
		}
		if _, _, err := kernel.SetSysctl(kernel.Sysctl{Key: key, Value: heedsTheHash}); err != nil {
			return kernel.Explain(fmt.Errorf("sysctl -w %s=%s: %w", key, heedsTheHash, err))
		}
	}
	return nil
}

func (b *Balance) keepFormer(i int, value string) error {
	if value == "" {
		return nil
	}
	n, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return fmt.Errorf("sysctl %s: %w", hashPolicies[i], err)
	}
	return b.in.Maps[formerMap].Put(uint32(i), uint32(n+1))
}

// repairPolicy sets them again if somebody has changed them. What they have set is what is
// restored in the end.
func (b *Balance) repairPolicy() (mended []string, err error) {
	now, err := presentPolicies()
	if err != nil {
		return nil, err
	}
	for i, key := range hashPolicies {
		if now[i] == "" || now[i] == heedsTheHash {
			continue
		}
		if err := b.keepFormer(i, now[i]); err != nil {
			return nil, err
		}
		mended = append(mended, fmt.Sprintf("set %s to %s, which was %s", key, heedsTheHash, now[i]))
	}
	if mended == nil {
		return nil, nil
	}
	if err := setPolicy(); err != nil {
		return nil, err
	}
	return mended, nil
}

// restorePolicy puts the former values back, unless somebody else has changed them meanwhile.
func restorePolicy(former policies) (err error) {
	for i, key := range hashPolicies {
		if former[i] == "" {
			continue
		}
		now, e := kernel.ReadSysctl(key)
		if e == nil && now == heedsTheHash {
			_, _, e = kernel.SetSysctl(kernel.Sysctl{Key: key, Value: former[i]})
		}
		err = errors.Join(err, kernel.Explain(e))
	}
	return err
}

// HeedsBalance reports whether the kernel heeds what the programs choose, in the network
// namespace of the calling thread.
func HeedsBalance() bool {
	now, err := presentPolicies()
	return err == nil && now[0] == heedsTheHash && (now[1] == "" || now[1] == heedsTheHash)
}

// HashFiveTuple has the kernel's multipath routes hash the five-tuple, as a NodePlan of a
// switch has it, in the network namespace of the calling thread.
func HashFiveTuple() error {
	_, err := new(Report).SetSysctls(fiveTuple())
	return err
}
