// Package service is what weft's daemons, weft host and weft switch, need of the system
// that runs them, and do alike: they become another user with a few capabilities
// (RunAs), tell systemd how they are (Notifier), answer who asks for their status
// (ServeStatus), know how much memory they have (LimitMemory) and what time it is
// (Clock), and take signals (Loop). What a daemon is for is not here.
package service
