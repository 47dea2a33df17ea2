// Package mpi measures how long collectives of MPI take over a lab: what a program of
// scientists feels of how packets are spread. The programs are OpenMPI's, over the TCP of
// the hosts' kernels.
package mpi

// Patterns are what ranks do in a round: shift sends each rank's bytes to the rank Options.By
// places on, and receives as many; alltoall sends a part to each rank; allreduce adds up.
var Patterns = []string{"shift", "alltoall", "allreduce"}
