/*
 * rounds PATTERN BYTES BY ROUNDS CONGESTION-CONTROL: plays rounds of a pattern, and prints
 * the seconds that each took until the last rank had done.
 */
#include <dirent.h>
#include <mpi.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* control sets the congestion control of all TCP connections that there are. */
static void control(const char *name)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	int set = 0, failed = 0;

	while (d && (e = readdir(d))) {
		char now[16];
		socklen_t length = sizeof(now);
		int fd = atoi(e->d_name);

		if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, now, &length))
			continue; /* no TCP */
		if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, strlen(name)))
			failed++;
		else
			set++;
	}
	if (d)
		closedir(d);
	if (failed || !set) {
		fprintf(stderr, "congestion control %s: set at %d sockets, refused at %d\n", name, set, failed);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

int main(int argc, char **argv)
{
	int rank, size, bytes, by, rounds;
	char *out, *in;

	MPI_Init(&argc, &argv);
	if (argc != 6)
		MPI_Abort(MPI_COMM_WORLD, 2);
	bytes = atoi(argv[2]), by = atoi(argv[3]), rounds = atoi(argv[4]);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	out = malloc(bytes), in = malloc(bytes);
	for (int r = -1; r < rounds; r++) { /* the first one connects all that the pattern needs */
		int n = bytes;
		int wrong = 0;
		double begin;

		memset(out, rank + 1, n);
		memset(in, 0, n);
		MPI_Barrier(MPI_COMM_WORLD);
		begin = MPI_Wtime();
		if (!strcmp(argv[1], "shift")) {
			int from = (rank - by + size) % size;

			MPI_Sendrecv(out, n, MPI_BYTE, (rank + by) % size, 0, in, n, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			wrong = in[0] != (char)(from + 1) || in[n - 1] != (char)(from + 1);
		} else if (!strcmp(argv[1], "alltoall")) {
			n -= n % size;
			MPI_Alltoall(out, n / size, MPI_BYTE, in, n / size, MPI_BYTE, MPI_COMM_WORLD);
			wrong = in[0] != 1 || in[n - 1] != (char)size;
		} else {
			for (int i = 0; i < n / 4; i++)
				((int *)out)[i] = rank;
			MPI_Allreduce(out, in, n / 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
			wrong = ((int *)in)[n / 4 - 1] != size * (size - 1) / 2;
		}
		if (wrong) {
			fprintf(stderr, "rank %d has received what nobody sent\n", rank);
			MPI_Abort(MPI_COMM_WORLD, 3);
		}
		MPI_Barrier(MPI_COMM_WORLD);
		if (r < 0)
			control(argv[5]);
		else if (rank == 0)
			printf("%.6f\n", MPI_Wtime() - begin);
	}
	MPI_Finalize();
	return 0;
}
