package doctor

import "fmt"

// daemon is the name of the one that runs at such a machine.
func (f *Facts) daemon() string { return "weft " + f.Role }

func askDaemon(f *Facts) (all []Finding, well string) {
	d := &f.Daemon
	unit := "weft-" + f.Role
	switch {
	case d.Answers:
		return nil, fmt.Sprintf("process %d answers", d.Process)
	case d.Stopped:
		return append(all, wrong(stops, fmt.Sprintf("%s, process %d, is stopped and does not answer; its programs leave packets to the kernel", f.daemon(), d.Process),
			fmt.Sprintf("kill -CONT %d, or systemctl restart %s", d.Process, unit))), ""
	case d.Process != 0 && d.Hidden:
		return nil, fmt.Sprintf("process %d runs, and the configuration says status: off", d.Process)
	case d.Process != 0:
		return append(all, wrong(stops, fmt.Sprintf("%s, process %d, does not answer: %s", f.daemon(), d.Process, d.Error),
			fmt.Sprintf("journalctl -u %s; systemctl restart %s", unit, unit))), ""
	case d.Leftover:
		return append(all, wrong(stops, f.daemon()+" does not run, and one that was killed or has crashed has left its rules and routes",
			fmt.Sprintf("journalctl -u %s says why; systemctl restart %s, or weft host --cleanup removes what is left", unit, unit))), ""
	case f.Expected:
		return append(all, wrong(stops, f.daemon()+" does not run in this network namespace",
			fmt.Sprintf("systemctl enable --now %s; journalctl -u %s says why it has ended", unit, unit))), ""
	}
	return nil, "none runs here, and none needs to"
}
