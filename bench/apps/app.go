package apps

import (
	"fmt"
	"slices"
	"strings"
)

// App is a program as a workload.
type App struct {
	Name, About string
	mpi         string // pattern of bench/mpi; "": pairs of a client and a server
	needs       []program
}

// program is a file that must be there, and the package of Debian that has it.
type program struct{ file, pkg string }

var openMPI = []program{{"mpirun", "openmpi-bin"}, {"mpicc", "libopenmpi-dev"}, {"gcc", "gcc"}, {"nsenter", "util-linux"}}

// Apps are all programs, in the order in which they run.
var Apps = []App{
	{"mpi-shift", "OpenMPI: each rank sends to the rank at the same place of the next rack, and receives as much", "shift", openMPI},
	{"mpi-alltoall", "OpenMPI: each rank sends a part to each", "alltoall", openMPI},
	{"mpi-allreduce", "OpenMPI: all ranks add up their numbers", "allreduce", openMPI},
	{"redis", "redis-benchmark: SETs, then GETs of 4 KB by 4 connections; no keys are written to disk", "", []program{{"redis-server", "redis-server"}, {"redis-benchmark", "redis-tools"}}},
	{"pgbench", "pgbench: selects of texts of 8 KB by 2 connections to PostgreSQL", "", []program{{"initdb", "postgresql"}, {"postgres", "postgresql"}, {"pgbench", "postgresql-contrib"}}},
	{"nginx", "wrk: GETs of a page of 8 KB by 4 connections to nginx", "", []program{{"nginx", "nginx-light"}, {"wrk", "wrk"}}},
	{"iperf3", "iperf3: one stream from its server", "", []program{{"iperf3", "iperf3"}}},
	{"rsync", "rsync: a folder from a daemon, half of it one file, half 16 small ones", "", []program{{"rsync", "rsync"}}},
}

// AppNames are those of Apps.
func AppNames() (names []string) {
	for _, a := range Apps {
		names = append(names, a.Name)
	}
	return names
}

// Packages are those of Debian that have the app's programs.
func (a App) Packages() (names []string) {
	for _, p := range a.needs {
		if !slices.Contains(names, p.pkg) {
			names = append(names, p.pkg)
		}
	}
	return names
}

// mpiRounds are what an app of MPI sends its bytes in.
const mpiRounds = 4

// MinBytes is the least of Options.Bytes: in a round of MPI a rank sends each rank a number.
func MinBytes(hosts int) int { return 4 * hosts * mpiRounds }

// missing says what is to be installed for an app, "" if it is all there. find returns where a
// program is.
func (a App) missing(find func(file string) (string, error)) string {
	var files, packages []string
	for _, p := range a.needs {
		if _, err := find(p.file); err == nil {
			continue
		}
		files = append(files, p.file)
		if !slices.Contains(packages, p.pkg) {
			packages = append(packages, p.pkg)
		}
	}
	if files == nil {
		return ""
	}
	return fmt.Sprintf("%s missing: apt install %s", strings.Join(files, ", "), strings.Join(packages, " "))
}

// Row is a way to spread packets.
type Row struct {
	Name, About string
	balance     string // how switches spread them, as in lab.Config
	host        string // lines of weft host's configuration; "": none runs
}

// Baseline is the row that the others are compared with.
const Baseline = "kernel-ecmp"

// Rows are all rows.
var Rows = []Row{
	{Baseline, "the kernels' ECMP by the five-tuple", "", ""},
	{"gateway-presto", "weft host in mode gateway, flowcells of 8 KB", "", "mode: gateway\npolicy: presto\nflowcell_bytes: 8192\n"},
	{"gateway-luopan", "weft host in mode gateway, flowcells of 8 KB, congestion by samples", "", "mode: gateway\npolicy: luopan\nflowcell_bytes: 8192\n"},
	{"offload-drb", "weft host in mode offload, packets by digit reversal", "", "mode: offload\npolicy: drb\n"},
	{"host-auto", "weft host, mode and policy by its defaults", "", "mode: auto\n"},
	{"switch-drill", "switches by drill, plain hosts", "drill", ""},
	{"switch-drb", "switches by digit reversal, plain hosts", "drb", ""},
}

// DefaultRows are those that run where nobody says which.
var DefaultRows = []string{Baseline, "gateway-presto", "gateway-luopan", "offload-drb", "host-auto"}

// RowNames are those of Rows.
func RowNames() (names []string) {
	for _, r := range Rows {
		names = append(names, r.Name)
	}
	return names
}
