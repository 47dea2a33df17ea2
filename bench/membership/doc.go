// Package membership measures a mesh whose hosts find each other on etcd: how long it takes until
// all others act on a host that joins, leaves, dies, moves or renews its key, while members of etcd
// are killed and parts of the network are cut. Meanwhile hosts have connections, of which none may
// be lost, and others forge, replay, and send after their end, of which nothing may be accepted.
//
// The members of etcd are programs. The hosts are stack.Hosts in this process, as an ordinary user
// runs them. All networks are cut by relays in this process, so nothing needs a privilege.
package membership
