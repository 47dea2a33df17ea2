package validate

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// base is the folder of the manifests.
const base = ".."

// deployment is what is applied.
type deployment struct {
	namespace corev1.Namespace
	account   corev1.ServiceAccount
	config    corev1.ConfigMap
	daemons   appsv1.DaemonSet
}

// overlay builds the base with components, as kubectl kustomize does, in a copy of the folder.
func overlay(t testing.TB, components ...string) []string {
	t.Helper()
	fs := filesys.MakeFsInMemory()
	err := filepath.WalkDir(base, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == "validate" {
			return cmp.Or(err, error(filepath.SkipDir))
		}
		if d.IsDir() || !strings.HasSuffix(name, ".yaml") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return fs.WriteFile(filepath.Join("/kubernetes", strings.TrimPrefix(name, base)), text)
	})
	if err != nil {
		t.Fatal(err)
	}
	top := "resources: [../kubernetes]\ncomponents:\n"
	for _, c := range components {
		top += "- ../kubernetes/components/" + c + "\n"
	}
	if len(components) == 0 {
		top = "resources: [../kubernetes]\n"
	}
	if err := fs.WriteFile("/cluster/kustomization.yaml", []byte(top)); err != nil {
		t.Fatal(err)
	}
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, "/cluster")
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, r := range all.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}

// decoder is strict: a field that the API does not have, or that is there twice, is an error.
func decoder(t testing.TB) runtime.Decoder {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
}

// deployed decodes what the base with components is.
func deployed(t testing.TB, components ...string) (d deployment) {
	t.Helper()
	seen := 0
	for _, text := range overlay(t, components...) {
		o, _, err := decoder(t).Decode([]byte(text), nil, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		seen++
		switch o := o.(type) {
		case *corev1.Namespace:
			d.namespace = *o
		case *corev1.ServiceAccount:
			d.account = *o
		case *corev1.ConfigMap:
			d.config = *o
		case *appsv1.DaemonSet:
			d.daemons = *o
		default:
			t.Fatalf("%T is not expected", o)
		}
	}
	if seen != 4 {
		t.Fatalf("%d objects, want 4", seen)
	}
	return d
}

func pod(d deployment) corev1.PodSpec { return d.daemons.Spec.Template.Spec }

// What is applied decodes strictly, and its parts fit together, with each component and all.
func TestManifests_decodeAndFit(t *testing.T) {
	for _, components := range [][]string{nil, {"metrics"}, {"own-user"}, {"metrics", "own-user"}} {
		d := deployed(t, components...)
		spec := d.daemons.Spec
		for _, o := range []interface{ GetNamespace() string }{&d.account, &d.config, &d.daemons} {
			if o.GetNamespace() != d.namespace.Name {
				t.Errorf("%T is in %q, and the namespace is %q", o, o.GetNamespace(), d.namespace.Name)
			}
		}
		if d.namespace.Labels["pod-security.kubernetes.io/enforce"] != "privileged" {
			t.Error("Pod Security would refuse the pods")
		}
		for k, v := range spec.Selector.MatchLabels {
			if spec.Template.Labels[k] != v {
				t.Errorf("the selector has %s=%s, the pods have not", k, v)
			}
		}
		if r := spec.UpdateStrategy.RollingUpdate; r.MaxSurge.IntValue() != 0 || r.MaxUnavailable.IntValue() != 1 {
			t.Errorf("two daemons would want one node: %+v", r)
		}
		p := spec.Template.Spec
		if p.ServiceAccountName != d.account.Name || *p.AutomountServiceAccountToken || !p.HostNetwork || p.HostPID || p.HostIPC {
			t.Errorf("%+v", p)
		}
		if *p.TerminationGracePeriodSeconds < 30 || p.PriorityClassName != "system-node-critical" || !slices.Equal(p.Tolerations, []corev1.Toleration{{Operator: corev1.TolerationOpExists}}) {
			t.Errorf("%+v", p)
		}
		sources := p.Volumes[slices.IndexFunc(p.Volumes, func(v corev1.Volume) bool { return v.Name == "config" })].Projected.Sources
		if sources[0].ConfigMap.Name != d.config.Name || !strings.HasPrefix(d.config.Name, "weft-host-") {
			t.Errorf("the volume has ConfigMap %s, which is called %s", sources[0].ConfigMap.Name, d.config.Name)
		}
		for _, c := range append(p.InitContainers, p.Containers...) {
			checkContainer(t, p, c)
		}
	}
}

// checkContainer looks at what each container must have.
func checkContainer(t *testing.T, p corev1.PodSpec, c corev1.Container) {
	t.Helper()
	s := c.SecurityContext
	if !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || s.Privileged != nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("%s: %+v", c.Name, s)
	}
	if c.Image != "registry.example/weft:latest" {
		t.Errorf("%s: image %s", c.Name, c.Image)
	}
	if c.Resources.Limits.Memory().IsZero() || !c.Resources.Limits.Cpu().IsZero() {
		t.Errorf("%s: limits %v", c.Name, c.Resources.Limits)
	}
	for _, m := range c.VolumeMounts {
		if !slices.ContainsFunc(p.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
			t.Errorf("%s: there is no volume %s", c.Name, m.Name)
		}
		if strings.HasPrefix(m.MountPath, "/proc") || strings.HasPrefix(m.MountPath, "/sys") {
			t.Errorf("%s: container runtimes refuse a mount at %s", c.Name, m.MountPath)
		}
	}
	for _, e := range c.Env {
		if e.Name == "WEFT_SYSCTL_DIR" && !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == e.Value+"/net" && !m.ReadOnly }) {
			t.Errorf("%s: %s=%s, where nothing is mounted to be written", c.Name, e.Name, e.Value)
		}
	}
}

// A wrong manifest is noticed.
func TestManifests_decoderIsStrict(t *testing.T) {
	texts := overlay(t)
	text := texts[slices.IndexFunc(texts, func(s string) bool { return strings.Contains(s, "kind: DaemonSet") })]
	for old, wrong := range map[string]string{
		"hostNetwork: true":                 "hostNetwork: true\n      hostNetworks: true",
		"failureThreshold: 60":              "failureThreshold: many",
		"readOnlyRootFilesystem":            "readonlyRootFilesystem",
		"updateStrategy:":                   "updatestrategy:",
		"apiVersion: apps/v1":               "apiVersion: apps/v2",
		"terminationGracePeriodSeconds: 30": "terminationGracePeriodSeconds: 30\n      terminationGracePeriodSeconds: 31",
	} {
		if !strings.Contains(text, old) {
			t.Fatalf("it has no %q\n%s", old, text)
		}
		if _, _, err := decoder(t).Decode([]byte(strings.Replace(text, old, wrong, 1)), nil, nil); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}

// Annotations and port of the component are those of the example in host.yaml.
func TestManifests_metrics(t *testing.T) {
	d := deployed(t, "metrics")
	a, port := d.daemons.Spec.Template.Annotations, pod(d).Containers[0].Ports[0]
	if a["prometheus.io/port"] != "9469" || port.ContainerPort != 9469 || port.HostPort != 9469 ||
		!strings.Contains(d.config.Data["host.yaml"], `#metrics: {listen: "0.0.0.0:9469", remote: true}`) {
		t.Errorf("%v, %+v", a, port)
	}
}
