package validate

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	corev1 "k8s.io/api/core/v1"
)

// usual are the capabilities of a container whose manifest names none.
var usual = []string{"CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP", "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE"}

// capabilities are what a container has by its manifest.
func capabilities(c corev1.Container) (all []string) {
	spec := c.SecurityContext.Capabilities
	for _, name := range usual {
		if !slices.Contains(spec.Drop, corev1.Capability(name)) && !slices.Contains(spec.Drop, "ALL") {
			all = append(all, "CAP_"+name)
		}
	}
	for _, name := range spec.Add {
		all = append(all, "CAP_"+string(name))
	}
	return all
}

// runtimeSpec is what a container of a pod is for an OCI runtime, as a kubelet and containerd have
// it: nothing is writable or visible but by the manifest. node has the node's files that volumes
// name, by volume, and netns the node's network namespace.
func runtimeSpec(i image, p corev1.PodSpec, c corev1.Container, node map[string]string, netns string) (*specs.Spec, error) {
	caps := capabilities(c)
	s := &specs.Spec{
		Version: "1.0.2",
		Root:    &specs.Root{Path: i.root, Readonly: *c.SecurityContext.ReadOnlyRootFilesystem},
		Process: &specs.Process{
			Args:            append(append([]string(nil), i.config.Entrypoint...), c.Args...),
			Env:             append([]string(nil), i.config.Env...),
			Cwd:             i.config.WorkingDir,
			NoNewPrivileges: !*c.SecurityContext.AllowPrivilegeEscalation,
			Capabilities:    &specs.LinuxCapabilities{Bounding: caps, Effective: caps, Permitted: caps},
			User:            specs.User{UID: uint32(*c.SecurityContext.RunAsUser)},
		},
		Mounts: []specs.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
			{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}},
			{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: []string{"nosuid", "noexec", "nodev"}},
			{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", "ro"}},
			{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"nosuid", "noexec", "nodev", "relatime", "ro"}},
		},
		Linux: &specs.Linux{
			Namespaces:    []specs.LinuxNamespace{{Type: specs.PIDNamespace}, {Type: specs.IPCNamespace}, {Type: specs.MountNamespace}, {Type: specs.NetworkNamespace, Path: netns}},
			MaskedPaths:   []string{"/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware"},
			ReadonlyPaths: []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
			Resources:     &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}},
		},
	}
	for _, e := range c.Env {
		s.Process.Env = append(s.Process.Env, e.Name+"="+e.Value)
	}
	if p.SecurityContext.FSGroup != nil {
		s.Process.User.AdditionalGids = []uint32{uint32(*p.SecurityContext.FSGroup)}
	}
	limit := c.Resources.Limits.Memory().Value()
	s.Linux.Resources.Memory = &specs.LinuxMemory{Limit: &limit}
	for _, m := range c.VolumeMounts {
		source, ok := node[m.Name]
		if !ok {
			return nil, fmt.Errorf("volume %s is not of this node", m.Name)
		}
		how := "rw"
		if m.ReadOnly {
			how = "ro"
		}
		s.Mounts = append(s.Mounts, specs.Mount{Destination: filepath.Clean(m.MountPath), Type: "bind", Source: source, Options: []string{"rbind", "rprivate", how}})
	}
	if p.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		return nil, fmt.Errorf("seccomp profile %s", p.SecurityContext.SeccompProfile.Type)
	}
	filter, err := seccomp.GetDefaultProfile(s)
	s.Linux.Seccomp = filter
	return s, err
}
