// Package validate has no code: its tests decode the manifests beside it as a Kubernetes API
// server does, and run the image as the manifests have it, by runc at the hosts of a lab. It is
// a module of its own, so that weft's needs nothing of Kubernetes.
package validate
