package interop

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"weft/internal/slowtest"
)

// talker is a program that one writes to.
type talker struct {
	*process
	in io.WriteCloser
}

func (n *network) talker(node string, argv ...string) *talker {
	n.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		n.Fatal(err)
	}
	return &talker{n.startCmd(node, cmd), in}
}

// webFiles are what nginx serves, by their size.
var webFiles = []int{0, 1, 1e6, 100e6}

// webFile is the content of one of them.
func webFile(size int) []byte {
	b := make([]byte, size)
	rand.NewChaCha8([32]byte{byte(size), byte(size >> 16)}).Read(b)
	return b
}

// webServer starts an nginx that serves files of these sizes, and returns what
// their addresses begin with.
func (n *network) webServer(node, addr string, sizes []int) (url string) {
	n.Helper()
	const config = `daemon off; master_process off; pid %[1]s/nginx.pid; error_log stderr;
events {}
http { access_log off; default_type application/octet-stream; sendfile on;
client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
server { listen %[2]s; root %[1]s; } }
`
	host := net.JoinHostPort(addr, "8080")
	dir, err := os.MkdirTemp(n.dir, "web")
	if err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		n.Fatal(err)
	}
	name := filepath.Base(dir)
	for _, size := range sizes {
		n.file(fmt.Sprintf("%s/%d", name, size), webFile(size))
	}
	n.start(node, "nginx", "-p", dir, "-e", "stderr", "-c", n.file(name+"/nginx.conf", fmt.Appendf(nil, config, dir, host)))
	n.listens(node, "8080")
	return "http://" + host
}

// web fetches files of these sizes from an nginx by curl.
func (n *network) web(from, to, addr string, sizes []int) {
	url := n.webServer(to, addr, sizes)
	for _, size := range sizes {
		got := filepath.Join(n.dir, "got")
		out := n.must(from, "curl", "-gsS", "--fail", "--max-time", "50", "-o", got, "-w", "%{speed_download}", fmt.Sprintf("%s/%d", url, size))
		if hash(n, got) != sha256.Sum256(webFile(size)) {
			n.Errorf("%d bytes arrived changed", size)
		}
		if size >= 1e6 {
			n.Logf("curl, %d bytes: %s bytes/s", size, out)
		}
		os.Remove(got)
	}
}

func hash(n *network, path string) (sum [32]byte) {
	n.Helper()
	f, err := os.Open(path)
	if os.IsNotExist(err) { // curl makes none of nothing
		return sha256.Sum256(nil)
	}
	if err != nil {
		n.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		n.Fatal(err)
	}
	return [32]byte(h.Sum(nil))
}

// secureCopy copies a file there and back by scp.
func (n *network) secureCopy(from, to, addr string) {
	dir, err := os.MkdirTemp(n.dir, "ssh")
	if err != nil {
		n.Fatal(err)
	}
	defer os.RemoveAll(dir)
	at := func(name string) string { return filepath.Join(dir, name) }
	// Where sshd locks its children in; Debian's service makes it.
	if err := os.Mkdir("/run/sshd", 0o755); err == nil {
		n.Cleanup(func() { os.Remove("/run/sshd") })
	}
	for _, key := range []string{"host", "user"} {
		n.must(from, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", at(key))
	}
	config := fmt.Sprintf(`Port 2222
ListenAddress %s
HostKey %s
AuthorizedKeysFile %s
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
Subsystem sftp internal-sftp
`, addr, at("host"), at("user.pub"))
	if err := os.WriteFile(at("config"), []byte(config), 0o600); err != nil {
		n.Fatal(err)
	}
	sshd, err := exec.LookPath("sshd") // which insists on its whole path
	if err != nil {
		n.Fatal(err)
	}
	n.start(to, sshd, "-D", "-e", "-f", at("config"))
	n.listens(to, "2222")
	content := webFile(slowtest.Choose(5_000_000, 200_000_000))
	if err := os.WriteFile(at("there"), content, 0o600); err != nil {
		n.Fatal(err)
	}
	if strings.Contains(addr, ":") {
		addr = "[" + addr + "]"
	}
	for _, way := range [][2]string{{at("there"), "root@" + addr + ":" + at("here")}, {"root@" + addr + ":" + at("here"), at("back")}} {
		n.must(from, "scp", "-q", "-B", "-F", "none", "-P", "2222", "-i", at("user"), "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", way[0], way[1])
	}
	if hash(n, at("back")) != sha256.Sum256(content) {
		n.Error("arrived changed")
	}
}
