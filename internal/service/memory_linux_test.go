package service

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMemoryLimit_leastOfAllGroups(t *testing.T) {
	const huge = "9223372036854771712\n" // what version 1 has for none
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"version 2": {map[string]string{"proc/self/cgroup": "0::/system.slice/weft-host.service\n",
			"sys/fs/cgroup/system.slice/weft-host.service/memory.max": "67108864\n", "sys/fs/cgroup/system.slice/memory.max": "max\n"}, 67108864},
		"of a parent": {map[string]string{"proc/self/cgroup": "0::/system.slice/weft-host.service\n",
			"sys/fs/cgroup/system.slice/weft-host.service/memory.max": "max\n", "sys/fs/cgroup/system.slice/memory.max": "1000000\n"}, 1000000},
		"in a container": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "5000\n"}, 5000},
		"version 1": {map[string]string{"proc/self/cgroup": "9:name=systemd:/\n4:memory:/a/b\n3:cpuset:/\n0::/\n",
			"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": huge, "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "7000\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": huge}, 7000},
		"none":       {map[string]string{"proc/self/cgroup": "0::/x\n", "sys/fs/cgroup/x/memory.max": "max\n"}, 0},
		"no groups":  {nil, 0},
		"not a line": {map[string]string{"proc/self/cgroup": "0\n::::\n\n"}, 0},
		"not a size": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "-1\n"}, 0},
	} {
		root := t.TempDir()
		for file, text := range c.files {
			file = filepath.Join(root, file)
			os.MkdirAll(filepath.Dir(file), 0o755)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := memoryLimit(root); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
