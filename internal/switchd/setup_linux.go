package switchd

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"weft/encap"
	"weft/fabric"
	"weft/internal/event"
	"weft/internal/service"
)

// kept are the capabilities that the agent needs from start to end: to change routes, and
// to bind a socket to a device that was made anew.
var kept = service.Capabilities{unix.CAP_NET_ADMIN, unix.CAP_NET_RAW}

// Environment variables for the process that begins anew with fewer privileges. They say
// that the switch has been set up, and by which descriptors the process reaches what it may
// no longer look for.
const (
	configured        = "WEFT_SWITCH_CONFIGURED"
	setupDescriptors  = "WEFT_SWITCH_SETUP"
	meterDescriptors  = "WEFT_SWITCH_METER"
	extensionStatuses = "WEFT_SWITCH_EXTENSIONS"

	balanceDescriptors = "WEFT_SWITCH_BALANCE"
	balanceRefused     = "WEFT_SWITCH_PLAIN" // why there is nothing to inherit
)

// taken returns the value of a variable and removes it, so that no program that this one
// starts gets it.
func taken(variable string) string {
	defer os.Unsetenv(variable)
	return os.Getenv(variable)
}

// setUp sets the switch up if the configuration wants that. Then it makes the process begin
// anew with less than root's privileges. In the new process it does nothing. Loading the
// program that decapsulates takes CAP_BPF, and finding that of an earlier run by its number
// takes CAP_SYS_ADMIN: the new process has neither. CAP_NET_ADMIN is enough to put back a
// program that is open.
func (d *daemon) setUp(c Config) error {
	done, setup, meter := taken(configured) != "", taken(setupDescriptors), taken(meterDescriptors)
	extensions := taken(extensionStatuses)
	balance, plain := taken(balanceDescriptors), taken(balanceRefused)
	must, err := kept.Exceeded()
	if err != nil {
		return err
	}
	var a service.Account
	if must {
		if a, err = service.LookUp(d.file.User); err != nil {
			return d.file.lines.Errorf("user", "%w", err)
		}
	}
	if done {
		err = errors.Join(d.inheritSetup(c, setup), d.inheritMeter(c, meter, extensions), d.inheritBalance(c, balance, plain))
	} else if err = d.configure(c); err == nil {
		err = errors.Join(d.attachMeter(c), d.attachBalance(c))
	}
	if d.setup != nil && d.balance != nil {
		d.setup.Balanced()
	}
	if err != nil || !must {
		return err
	}
	if _, err := makeDir(a.UID, a.GID); err != nil {
		return d.file.lines.Errorf("status", "%w", err)
	}
	env, err := d.pass()
	if err != nil {
		return err
	}
	return service.RunAs(a, kept, append(env, configured+"=1")...)
}

// pass returns the environment for the program that begins anew.
func (d *daemon) pass() (env []string, err error) {
	if d.setup != nil {
		words, err := d.setup.Descriptors()
		if err != nil {
			return nil, err
		}
		env = append(env, setupDescriptors+"="+words)
	}
	if d.meter != nil {
		words, err := d.meter.Descriptors()
		if err != nil {
			return nil, err
		}
		env = append(env, meterDescriptors+"="+words)
	}
	if len(d.extensions) > 0 {
		text, err := json.Marshal(d.extensions)
		if err != nil {
			return nil, err
		}
		env = append(env, extensionStatuses+"="+string(text))
	}
	if d.balance != nil {
		words, err := d.balance.Descriptors()
		if err != nil {
			return nil, err
		}
		env = append(env, balanceDescriptors+"="+words)
	}
	if d.classifier != nil {
		words, err := d.classifier.Descriptors()
		if err != nil {
			return nil, err
		}
		env = append(env, balanceDescriptors+"="+words)
	}
	if d.plain != "" {
		env = append(env, balanceRefused+"="+d.plain)
	}
	return env, nil
}

// inheritSetup takes over the set-up of the program that this one was before.
func (d *daemon) inheritSetup(c Config, descriptors string) error {
	if !d.file.Configure || descriptors == "" {
		return nil
	}
	plan, err := c.plan(c.Topology)
	if err != nil {
		return err
	}
	d.setup, err = fabric.InheritSwitch(plan, descriptors)
	return err
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
	var report fabric.Report
	if d.setup, report, err = fabric.ApplySwitch(plan); err != nil {
		return err
	}
	d.log.Infof(event.Configured, "configured: %d settings changed; decapsulates by %s; labels by %s", report.Changed, cmp.Or(report.Decap, "nothing"), cmp.Or(carriers(report.Labels), "nothing"))
	d.plain = service.OneLine(report.Plain)
	for _, note := range report.Notes {
		d.log.Info(event.Limited, "note: "+note)
	}
	return nil
}

// carriers lists them, for people.
func carriers(list []encap.Carrier) string {
	var names []string
	for _, c := range list {
		names = append(names, c.String())
	}
	return strings.Join(names, ", ")
}
