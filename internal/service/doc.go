// Package service holds what weft host and weft switch both need of the system that runs
// them: they become another user with a few capabilities (RunAs), tell systemd how they are
// (Notifier), answer requests for their status and metrics (ServeStatus, ServeMetrics), know how much memory they
// have (LimitMemory) and what time it is (Clock), and take signals (Loop). The purpose of a
// daemon is none of its business.
package service
