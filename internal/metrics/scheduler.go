package metrics

import "time"

var (
	schedulerLeads    = gauge("weft_scheduler_leads", "1 if this scheduler leads.")
	schedulerNodes    = gauge("weft_scheduler_nodes", "Hosts and edge switches that were heard lately.")
	schedulerFlows    = gauge("weft_scheduler_flows", "Elephants, by what is known of them: placed, or not.", "placed")
	schedulerRejected = counter("weft_scheduler_rejected_total", "Messages and flows that were not accepted, by reason.", "reason")
	schedulerRefused  = counter("weft_scheduler_refused_total", "Flows and placements that were refused, by reason.", "reason")
	schedulerDropped  = counter("weft_scheduler_dropped_flows_total", "Flows reported above a node's budget, or while another scheduler leads.")
	schedulerChanged  = counter("weft_scheduler_placements_changed_total", "Placements that are new or have another path.")
	schedulerWaiting  = gauge("weft_scheduler_placements_unwritten", "Changes of placements that etcd has not taken yet. No round is computed until it has.")
	schedulerEtcd     = counter("weft_scheduler_etcd_errors_total", "Times that etcd did not answer or refused.")
	schedulerRound    = gauge("weft_scheduler_round_seconds", "How long the latest round of placing took.")
)

// Scheduler is what a scheduler says about itself.
type Scheduler struct {
	Leads                        bool
	Nodes, Flows, Placed         int
	Unwritten                    int
	Rejected, Refused            map[string]uint64
	Dropped, Changed, EtcdErrors uint64
	Round                        time.Duration
}

// Scheduler writes it.
func (w Writer) Scheduler(s Scheduler) {
	w.truth(schedulerLeads, s.Leads)
	w.put(schedulerNodes, float64(s.Nodes))
	w.put(schedulerFlows, float64(s.Placed), "yes")
	w.put(schedulerFlows, float64(s.Flows-s.Placed), "no")
	for reason, n := range s.Rejected {
		w.count(schedulerRejected, n, reason)
	}
	for reason, n := range s.Refused {
		w.count(schedulerRefused, n, reason)
	}
	w.count(schedulerDropped, s.Dropped)
	w.count(schedulerChanged, s.Changed)
	w.put(schedulerWaiting, float64(s.Unwritten))
	w.count(schedulerEtcd, s.EtcdErrors)
	w.seconds(schedulerRound, s.Round)
}
