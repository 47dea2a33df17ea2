// Command wireguard is a tunnel by wireguard-go: its device, with its handshake and
// ChaCha20-Poly1305. With --bare it forwards packets between a TUN interface and UDP with
// wireguard-go's tun and conn packages, batches and offloads included, and without its
// cryptography: the most that a tunnel built on them can move. It is a module of its own, so
// that weft does not depend on wireguard-go.
//
// It is started by weft bench throughput, which configures the interface and
// asks, by a line on standard input, for counters on standard output; it ends
// when standard input does.
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "wireguard:", err)
		os.Exit(1)
	}
}

func run() error {
	name := flag.String("tun", "wg0", "name of the interface")
	mtu := flag.Int("mtu", 1420, "its MTU, bytes: wg-quick's")
	port := flag.Uint("port", 51820, "UDP port")
	peer := flag.String("peer", "", "address and port of the other end")
	bare := flag.Bool("bare", false, "forward without cryptography")
	keyFile := flag.String("key", "", "file with this end's private key, in hexadecimal")
	peerKey := flag.String("peer-key", "", "the other end's public key, in hexadecimal")
	profile := flag.String("profile", "", "file for a profile of the processor time between the first two questions")
	flag.Parse()
	tunnel, err := tun.CreateTUN(*name, *mtu)
	if err != nil {
		return fmt.Errorf("interface %s: %w", *name, err)
	}
	defer tunnel.Close()
	failed := make(chan error)
	if *bare {
		err = forward(tunnel, uint16(*port), *peer, failed)
	} else {
		err = encrypt(tunnel, uint16(*port), *peer, *keyFile, *peerKey, failed)
	}
	if err != nil {
		return err
	}
	go func() { failed <- answer(*profile) }()
	return <-failed
}

// encrypt starts a device that does all that wireguard-go does. Its only peer may send and
// receive anything.
func encrypt(tunnel tun.Device, port uint16, peer, keyFile, peerKey string, failed chan<- error) error {
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return fmt.Errorf("--key: %w", err)
	}
	for name, k := range map[string]string{"--key": string(key), "--peer-key": peerKey} {
		if b, err := hex.DecodeString(k); err != nil || len(b) != device.NoisePublicKeySize {
			return fmt.Errorf("%s is not %d bytes in hexadecimal", name, device.NoisePublicKeySize)
		}
	}
	d := device.NewDevice(tunnel, conn.NewDefaultBind(), device.NewLogger(device.LogLevelError, "wireguard: "))
	settings := []string{
		"private_key=" + string(key), fmt.Sprintf("listen_port=%d", port),
		"public_key=" + peerKey, "endpoint=" + peer, "allowed_ip=0.0.0.0/0", "allowed_ip=::/0",
	}
	if err := d.IpcSet(strings.Join(settings, "\n")); err != nil {
		return fmt.Errorf("settings of the device: %w", err)
	}
	if err := d.Up(); err != nil {
		return fmt.Errorf("bring the device up: %w", err)
	}
	go func() {
		<-d.Wait()
		failed <- errors.New("the device has ended")
	}()
	return nil
}

// counters are those that a process of weft bench throughput reports.
type counters struct {
	Mallocs  uint64 `json:"mallocs"`
	CPUNanos int64  `json:"cpu_ns"`
}

// answer replies with the process's counters to every line of standard input,
// until it ends. Between the first two it writes a profile, if there is a file for that.
func answer(profile string) error {
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(counters{}); err != nil { // ready
		return err
	}
	asked := 0
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if err := profiled(profile, in.Text(), &asked); err != nil {
			return err
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			return err
		}
		cpu := time.Duration(u.Utime.Nano() + u.Stime.Nano())
		if err := out.Encode(counters{m.Mallocs, cpu.Nanoseconds()}); err != nil {
			return err
		}
	}
	return nil
}

// profiled begins a profile at the first question for counts, and ends it at the second.
func profiled(file, question string, asked *int) error {
	if file == "" || question != "count" {
		return nil
	}
	*asked++
	switch *asked {
	case 1:
		f, err := os.Create(file)
		if err != nil {
			return err
		}
		return pprof.StartCPUProfile(f)
	case 2:
		pprof.StopCPUProfile()
	}
	return nil
}
