// Package notify tells systemd how a daemon is, by the protocol of sd_notify(3):
// datagrams of assignments to the socket that NOTIFY_SOCKET names. It is for Linux.
package notify
