package hostsetup

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// keptSettings keeps the files of settings open that are read often: opening one costs more than
// reading it. The zero value keeps none yet. It is not safe for concurrent use.
type keptSettings map[string]int

// longestSetting is more than a setting that is kept has bytes.
const longestSetting = 32

// read returns a setting. A file whose device is gone is opened anew, for there may be another
// device of that name.
func (k *keptSettings) read(key string) (string, error) {
	if value, ok := k.again(key); ok {
		return value, nil
	}
	k.forget(key)
	value, err := readSetting(key)
	if err != nil {
		return "", err
	}
	if fd, err := unix.Open(settingPath(key), unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
		if *k == nil {
			*k = keptSettings{}
		}
		(*k)[key] = fd
	}
	return value, nil
}

// again reads a file that is open.
func (k *keptSettings) again(key string) (string, bool) {
	fd, ok := (*k)[key]
	if !ok {
		return "", false
	}
	var b [longestSetting]byte
	n, err := unix.Pread(fd, b[:], 0)
	if err != nil || n == 0 || n == len(b) {
		return "", false
	}
	return strings.TrimSpace(string(b[:n])), true
}

// keep closes the files of all settings but these.
func (k *keptSettings) keep(wanted []kernel.Sysctl) {
	for key := range *k {
		if !slices.ContainsFunc(wanted, func(s kernel.Sysctl) bool { return s.Key == key }) {
			k.forget(key)
		}
	}
}

func (k *keptSettings) forget(key string) {
	if fd, ok := (*k)[key]; ok {
		unix.Close(fd)
		delete(*k, key)
	}
}

// close closes all files.
func (k *keptSettings) close() {
	for key := range *k {
		k.forget(key)
	}
}
