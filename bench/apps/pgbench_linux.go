package apps

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"weft/bench/apps/output"
	"weft/topology"
)

// pgbench selects texts from PostgreSQL, one in each transaction.
type pgbench struct{ common }

const (
	pgText    = 8_000
	pgTexts   = 100
	pgClients = 2
	// pgSQL is run by PostgreSQL alone, a statement a line.
	pgSQL = `create table documents (id int primary key, body text)
alter table documents alter body set storage external
insert into documents select i, rpad('', %d, md5(i::text)) from generate_series(1, %d) i
`
	pgScript = `\set id random(1, %d)
select body from documents where id = :id;
`
)

// user runs PostgreSQL, which refuses to run as root.
func (pgbench) user(s *site) (*syscall.Credential, error) { return s.systemUser("postgres", "nobody") }

func (pgbench) data(s *site, h topology.Node) string {
	return filepath.Join(s.at(h, "postgres"), "data")
}

func (pgbench) transactions(s *site) int { return max(s.bytes/pgText/pgClients, 1) }

// prepare makes a database, and copies it to all hosts.
func (p pgbench) prepare(ctx context.Context, s *site, hosts []topology.Node) error {
	user, err := p.user(s)
	if err != nil {
		return err
	}
	if err := s.makeDirs(hosts, user, "postgres"); err != nil {
		return err
	}
	first := p.data(s, hosts[0])
	text, err := runOnce(ctx, command(filepath.Dir(first), user, where("initdb"), "-D", first, "-A", "trust", "-U", "postgres", "--no-sync", "--wal-segsize=1", "-E", "UTF8", "--locale=C"), "")
	if err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	// Its error statuses do not tell of statements that failed, its text does.
	text, err = runOnce(ctx, command(filepath.Dir(first), user, where("postgres"), "--single", "-D", first, "-c", "fsync=off", "postgres"), fmt.Sprintf(pgSQL, pgText, pgTexts))
	if err != nil || strings.Contains(text, "ERROR") {
		return fmt.Errorf("making the table (%w): %s", err, text)
	}
	access := filepath.Join(first, "pg_hba.conf")
	if err := os.WriteFile(access, []byte("host all all 0.0.0.0/0 trust\n"), 0o600); err != nil { // who may connect is who is in the lab
		return err
	}
	for _, h := range hosts[1:] {
		if text, err := runOnce(ctx, command(s.at(h, "postgres"), user, "cp", "-r", first, p.data(s, h)), ""); err != nil {
			return fmt.Errorf("%w: %s", err, text)
		}
		// A data directory that others can read is refused.
		if err := os.Chmod(p.data(s, h), 0o700); err != nil {
			return err
		}
	}
	script := fmt.Appendf(nil, pgScript, pgTexts)
	for _, h := range hosts {
		if err := os.WriteFile(filepath.Join(s.at(h, "pgbench"), "script.sql"), script, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (pgbench) port() uint16 { return 5432 }

func (p pgbench) server(s *site, h topology.Node) *exec.Cmd {
	user, _ := p.user(s) // prepare has found it
	return command(s.at(h, "postgres"), user, where("postgres"), "-D", p.data(s, h), "-h", h.Addr.String(), "-p", "5432", "-k", s.at(h, "postgres"),
		"-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_connections=16", "-c", "autovacuum=off", "-c", "jit=off")
}

// ready looks for the word in the lock file, without a connection.
func (p pgbench) ready(s *site, h topology.Node) bool {
	b, err := os.ReadFile(filepath.Join(p.data(s, h), "postmaster.pid"))
	return err == nil && strings.Contains(string(b), "\nready")
}

// stop ends connections, too.
func (pgbench) stop() syscall.Signal { return syscall.SIGINT }

// logs are what clients at a host have written.
func (pgbench) logs(s *site, h topology.Node) []string {
	all, _ := filepath.Glob(filepath.Join(s.at(h, "pgbench"), "log.*")) // the pattern is right
	return all
}

func (p pgbench) client(s *site, h topology.Node, server netip.Addr) (*exec.Cmd, string, error) {
	for _, log := range p.logs(s, h) {
		if err := os.Remove(log); err != nil {
			return nil, "", err
		}
	}
	return command(s.at(h, "pgbench"), nil, where("pgbench"), "-n", "-h", server.String(), "-p", "5432", "-U", "postgres",
		"-c", strconv.Itoa(pgClients), "-t", strconv.Itoa(p.transactions(s)), "-f", "script.sql", "--log", "--log-prefix=log", "postgres"), "", nil
}

func (p pgbench) read(s *site, h topology.Node, text string) (float64, error) {
	all := p.transactions(s) * pgClients
	if err := output.Pgbench(text, all); err != nil {
		return 0, err
	}
	var log strings.Builder
	for _, name := range p.logs(s, h) {
		b, err := os.ReadFile(name) // a line of some 40 bytes for each transaction
		if err != nil {
			return 0, err
		}
		log.Write(b)
	}
	p99, err := output.PgbenchLog(log.String(), all)
	return p99Of(p99, all), err
}
