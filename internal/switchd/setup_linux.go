package switchd

import (
	"cmp"
	"os"

	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/internal/privileges"
)

// kept are the capabilities that the agent needs all along: to change routes, and
// to bind a socket again to a device that was made anew.
var kept = privileges.Capabilities{unix.CAP_NET_ADMIN, unix.CAP_NET_RAW}

// configured tells the program that begins anew with fewer privileges that the
// switch has been set up with more.
const configured = "WEFT_SWITCH_CONFIGURED"

// setUp sets the switch up if that is wanted, and makes the process begin anew
// with less than root's privileges; in the process that then begins it does
// nothing. Attaching the program that decapsulates takes CAP_BPF, and finding
// the one of an earlier run by its number CAP_SYS_ADMIN: neither is kept.
func (d *daemon) setUp(c Config) error {
	done := os.Getenv(configured) != ""
	os.Unsetenv(configured)
	must, err := kept.Exceeded()
	if err != nil {
		return err
	}
	var a privileges.Account
	if must {
		if a, err = privileges.LookUp(d.file.User); err != nil {
			return d.file.lines.Errorf("user", "%w", err)
		}
	}
	if done {
		err = d.inheritMeter(c)
	} else if err = d.configure(c); err == nil {
		err = d.attachMeter(c)
	}
	if err != nil || !must {
		return err
	}
	if d.file.Status == "" {
		if err := makeStatusDir(a.UID, a.GID); err != nil {
			return d.file.lines.Errorf("status", "%w", err)
		}
	}
	env, err := d.passMeter()
	if err != nil {
		return err
	}
	return privileges.RunAs(a, kept, append(env, configured+"=1")...)
}

// configure sets the switch up as planned, if that is wanted.
func (d *daemon) configure(c Config) error {
	if !d.file.Configure {
		return nil
	}
	plan, err := c.plan(c.Topology)
	if err != nil {
		return err
	}
	report, err := fabric.Apply(plan)
	if err != nil {
		return err
	}
	d.log.Printf("configured: %d settings changed; decapsulates by %s; labels by %v", report.Changed, cmp.Or(report.Decap, "nothing"), report.Labels)
	for _, note := range report.Notes {
		d.log.Print("note: ", note)
	}
	return nil
}
