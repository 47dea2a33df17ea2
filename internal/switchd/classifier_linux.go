package switchd

import (
	"weft/fabric"
	"weft/internal/event"
	"weft/internal/service"
)

// classifies reports whether the switch has a flow classifier. Cores have none: they have one
// way to each pod.
func (d *daemon) classifies(plan fabric.NodePlan) bool {
	return fabric.Classifies(d.file.Balance) && len(plan.Suffixes) > 0
}

// attachClassifier has flows classified, if that is wanted, and otherwise removes what a crash
// has left. A switch that cannot classify forwards by its tables, and says why.
func (d *daemon) attachClassifier(c Config, ports []string) error {
	plan, err := c.plan(c.Topology)
	if err != nil {
		return err
	}
	if d.classifies(plan) && d.plain == "" {
		if d.classifier, err = fabric.OpenClassifier(plan, d.file.Balance); err == nil {
			return nil
		}
		d.plain = service.OneLine(err.Error())
		d.log.Warnf(event.Limited, "%s: packets go by host ID", d.plain)
	}
	n, err := fabric.DetachClassifier(ports)
	if n > 0 {
		d.log.Infof(event.Repaired, "removed an earlier run's classifier from %d ports", n)
	}
	if err != nil {
		d.log.Warnf(event.Limited, "note: an earlier run's classifier cannot be looked for: %v", err)
	}
	return nil
}

// inheritClassifier takes over what the program that this one was before has attached.
func (d *daemon) inheritClassifier(c Config, descriptors string) error {
	plan, err := c.plan(c.Topology)
	if err != nil || !d.classifies(plan) || d.plain != "" {
		return err
	}
	d.classifier, err = fabric.InheritClassifier(plan, d.file.Balance, descriptors)
	return err
}

// endClassifier leaves the switch with its tables alone.
func (d *daemon) endClassifier() {
	if d.classifier == nil {
		return
	}
	if err := d.classifier.Detach(); err != nil {
		d.log.Warnf(event.Trouble, "the classifier is left behind: %v", err)
	}
}

func (d *daemon) classifierStatus(s *Status) {
	if d.classifier == nil {
		return
	}
	stats, err := d.classifier.Stats()
	s.Classifier = &stats
	if err != nil {
		s.BalanceError = err.Error()
	}
}
