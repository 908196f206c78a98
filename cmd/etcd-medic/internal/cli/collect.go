package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/collect"
	"github.com/etcd-medic/etcd-medic/collect/find"
	"github.com/etcd-medic/etcd-medic/repair/run"
	"github.com/etcd-medic/etcd-medic/shell"
)

type collectOptions struct {
	output
	sources
	opt       collect.Options
	endpoints []string
	walDir    string
	noClient  bool
	limit     string
	nice      int
	root      string
	all, ssh  bool
	yes       bool
	remote    []string // flags that the commands for the hosts of --all get too
}

const collectLong = `Copy the data dir of a member while its server runs. Nothing is stopped, locked or written to. Run
it on the member's host.

The database comes as a snapshot of one moment from the member itself (--endpoints), or with --no-client from its file,
which works only while nothing is written. Then come the .snap files and the WAL. At the end collect proves that they
belong together: the log has every entry up to what the database has applied, all files are of one member, and nothing
was purged in between. Otherwise it tries again, up to --attempts times. The archive is a source like any data dir:
etcd-medic diagnose node1.tar.zst node2.tar.zst node3.tar.zst.

A raft snapshot that is newer than the database is left out and named, with the log after it. So the copy is like the
data dir of a member that lost power. It does not hold what members commit after their copy.

Of several --endpoints, the one is used that answers as the member of the data dir. An endpoint that does not answer, or
is another member's, is passed over and named.

Without --data-dir, or without --endpoints, flags and certificates are taken from the host's setup: systemd units,
static pods of kubeadm and OpenShift, k3s, RKE2, Talos, Docker. They are shown, and used after a yes or with --yes.

--all --ssh asks the cluster for its members and prints the command that collects each one on its host and sends the
archive here. With --yes the commands run, one after the other. --data-dir, --wal-dir, --limit-rate, --nice and --root
then apply on the hosts. A login is not sent: set ETCD_MEDIC_USER on the hosts.

The copy is made with low priority (--nice), in less than 20 MB of memory. --limit-rate limits what is read per second.
A slow database snapshot keeps the server from reusing pages, so do not make the limit too low. The space for the
archive is checked first. -o - writes to standard output.

Exit codes: 0 the copy is proven, 1 could not read or write, 2 wrong usage, 4 not proven after all attempts (no archive
is left), 5 refused: no data dir, not enough space, file exists, or the endpoint is another member.`

const collectExample = `  etcd-medic collect --data-dir /var/lib/etcd --endpoints https://127.0.0.1:2379 --cacert ca.crt --cert client.crt --key client.key -o /backup/node1.tar.zst
  etcd-medic collect --yes -o - | ssh rescue 'cat > node1.tar.zst'
  etcd-medic collect --data-dir /var/lib/etcd --no-client -o node1.tar.zst
  etcd-medic collect --all --ssh --endpoints https://10.0.0.1:2379 --cacert ca.crt --cert client.crt --key client.key`

// defaultRate leaves a loaded server its disk and processors; docs/COPYING.md has the measurements.
const defaultRate = "15M"

func newCollectCmd(s *Streams, run func(context.Context, *collectOptions) error) *cobra.Command {
	o := &collectOptions{output: output{io: s}}
	cmd := &cobra.Command{
		Use:     "collect -o FILE.tar.zst",
		Short:   "copy a member's data dir while its server runs",
		Long:    collectLong,
		Example: collectExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.endpoints = withScheme(o.endpoints, o.access)
			if err := o.check(); err != nil {
				return err
			}
			for _, name := range []string{"data-dir", "wal-dir", "limit-rate", "nice", "root"} {
				if f := cmd.Flags().Lookup(name); f.Changed {
					o.remote = append(o.remote, "--"+name, f.Value.String())
				}
			}
			return run(cmd.Context(), o)
		},
	}
	o.output.flags(cmd)
	o.accessFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.opt.DataDir, "data-dir", "", "data dir of the server (default: what is set up on this host)")
	f.StringVar(&o.walDir, "wal-dir", "", "WAL folder of the server, if it is outside the data dir")
	f.StringSliceVar(&o.endpoints, "endpoints", nil, "client URL of the member, or several of which one is; with "+
		"--all, of the cluster")
	f.BoolVar(&o.noClient, "no-client", false, "copy the database file itself, while nothing writes to it")
	f.StringVarP(&o.opt.Out, "output", "o", "", "archive to write, or - for standard output; must not exist")
	f.StringVar(&o.opt.Name, "name", "", "name of the member's folder in the archive (default: that of the data dir)")
	f.StringVar(&o.limit, "limit-rate", defaultRate,
		"most bytes read per second, such as 500K, 20M or 1G; 0 means no limit")
	f.IntVar(&o.nice, "nice", 10, "priority on Linux, 0 (usual) to 19 (lowest)")
	f.IntVar(&o.opt.Attempts, "attempts", 3, "how often the copy is begun when its parts do not belong together")
	f.BoolVar(&o.all, "all", false, "with --ssh: all members of the cluster")
	f.BoolVar(&o.all, "cluster", false, "the same as --all")
	f.BoolVar(&o.ssh, "ssh", false, "with --all: the commands for the members' hosts")
	f.BoolVar(&o.yes, "yes", false, "use what was found on the host; with --all --ssh, run the commands")
	f.StringVar(&o.root, "root", "/", "folder in which the host's files are, such as /host in a debug container")
	return cmd
}

func (o *collectOptions) check() error {
	o.opt.WALDir, o.opt.Version = o.walDir, Version()
	switch {
	case o.format != render.Table && o.format != render.JSON:
		return usagef("want table or json", "-w %s: this command has no rows", o.format)
	case o.all != o.ssh:
		return usagef("--all --ssh", "--all and --ssh are given together")
	case o.all && len(o.endpoints) == 0:
		return usagef("--endpoints URL", "--all needs an endpoint of the cluster")
	case o.all && (o.opt.Out != "" || o.opt.Name != ""):
		return usagef("", "--all names the archives MEMBER.tar.zst, in this folder: leave out -o and --name")
	case !o.all && o.opt.Out == "":
		return usagef("-o FILE.tar.zst", "the file for the archive is missing")
	case o.noClient && len(o.endpoints) > 0:
		return usagef("", "--no-client and --endpoints exclude each other")
	case o.nice < 0 || o.nice > 19:
		return usagef("", "--nice must be 0 to 19")
	case o.opt.Attempts < 1 || o.opt.Attempts > 100:
		return usagef("", "--attempts must be 1 to 100")
	case o.opt.Out == "-" && o.format != render.Table:
		return usagef("choose a file", "-o - and -w json both want standard output")
	}
	var err error
	if o.opt.Rate, err = parseRate(o.limit); err != nil {
		return usagef("such as 500K, 20M or 1G", "--limit-rate: %v", err)
	}
	return nil
}

// parseRate reads bytes with a suffix K, M or G, as curl does.
func parseRate(s string) (int64, error) {
	if s == "" || s == "0" {
		return 0, nil
	}
	shift := map[byte]uint{'K': 10, 'M': 20, 'G': 30}[strings.ToUpper(s)[len(s)-1]]
	num := s
	if shift > 0 {
		num = s[:len(s)-1]
	}
	n, err := strconv.ParseInt(num, 10, 64)
	if err != nil || n < 1 || n > 1<<62>>shift {
		return 0, fmt.Errorf("%q is not a number of bytes", s)
	}
	return n << shift, nil
}

const (
	// sparing is how much the heap may grow between two garbage collections, in percent. heapLimit is the size at which
	// collections become more frequent: the memory of the host belongs to the server. It bounds all that Go's runtime
	// takes, of which 12 MiB are never free: with less than this, three quarters of the work were collections.
	sparing   = 100
	heapLimit = 18 << 20
)

// spared is what the process had before commands limited it, and how many of them do so now.
var spared struct {
	sync.Mutex
	commands       int
	percent, procs int
	limit          int64
}

// spare limits this process to one processor and little memory until the returned function is called. If several
// commands of a process do so, the last one ends it.
func spare() (undo func()) {
	s := &spared
	s.Lock()
	defer s.Unlock()
	if s.commands++; s.commands == 1 {
		s.limit = spareHeap(true, heapLimit) // first: boundHeap then leaves the percent alone
		s.percent = debug.SetGCPercent(sparing)
		s.procs = runtime.GOMAXPROCS(1)
	}
	return func() {
		s.Lock()
		defer s.Unlock()
		if s.commands--; s.commands == 0 {
			debug.SetGCPercent(s.percent)
			spareHeap(false, s.limit)
			runtime.GOMAXPROCS(s.procs)
		}
	}
}

func runCollect(ctx context.Context, o *collectOptions) error {
	if o.all {
		return o.hosts(ctx)
	}
	if err := o.complete(ctx); err != nil {
		return err
	}
	if o.nice > 0 && o.io.Yield != nil {
		if err := o.io.Yield(o.nice); err != nil {
			o.io.notef("%v; continuing with the usual priority", err)
		}
	}
	o.opt.Access, o.opt.Stdout, o.opt.Progress = o.access, o.io.Out, o.io.Progress()
	o.opt.Access.Skipped = o.io.skipped
	defer spare()()
	m, err := collect.Run(ctx, o.opt)
	o.io.clearStatus()
	if err != nil {
		return err
	}
	if o.opt.Out == "-" {
		return nil
	}
	return o.show(m)
}

// complete fills in missing flags from the setup of the host, after consent.
func (o *collectOptions) complete(ctx context.Context) error {
	o.opt.Endpoints = o.endpoints
	if o.opt.DataDir != "" && (o.noClient || len(o.opt.Endpoints) > 0) {
		return nil
	}
	var fit []find.Member
	for _, m := range find.Members(os.DirFS(o.root)) {
		m.DataDir, m.WALDir = o.at(m.DataDir), o.at(m.WALDir)
		m.CACert, m.Cert, m.Key = o.at(m.CACert), o.at(m.Cert), o.at(m.Key)
		if o.opt.DataDir == "" || filepath.Clean(o.opt.DataDir) == m.DataDir {
			fit = append(fit, m)
		}
	}
	var text []string
	for _, m := range fit {
		text = append(text, fmt.Sprintf("%s (%s)", m.Kind, m.File), "  "+o.command(&m).String())
	}
	switch {
	case len(fit) == 0:
		return usagef("name --data-dir, and --endpoints or --no-client", "no etcd was found that is set up on this "+
			"host below %s", o.root)
	case len(fit) > 1:
		o.list(fit)
		return usagef("choose one of these commands", "several etcd servers are set up on this host")
	case o.yes:
		o.list(fit)
	case o.io.In == nil:
		o.list(fit)
		return usagef("run the command, or add --yes", "what was found is not used without consent")
	default:
		if err := o.io.prompt()(ctx, append(append([]string{"Found:"}, text...), "Copy it so?")); err != nil {
			if errors.Is(err, run.ErrStopped) {
				return usagef("run the command by hand with other flags", "nothing was done")
			}
			return err
		}
	}
	o.use(&fit[0])
	return nil
}

// list prints what was found on the host, with each command on a separate line, for copying.
func (o *collectOptions) list(fit []find.Member) {
	for i := range fit {
		o.io.notef("found: %s (%s)", fit[i].Kind, fit[i].File)
		_, _ = fmt.Fprintf(o.io.Err, "  %s\n", o.command(&fit[i])) // the exit code says that nothing was done
	}
}

// at returns the location of a path of the host.
func (o *collectOptions) at(p string) string {
	if p == "" || o.root == "/" {
		return p
	}
	return filepath.Join(o.root, p)
}

func (o *collectOptions) use(m *find.Member) {
	o.opt.DataDir = m.DataDir
	o.opt.WALDir = cmp.Or(o.opt.WALDir, m.WALDir)
	o.opt.Name = cmp.Or(o.opt.Name, shell.FileName(m.Name))
	if m.Name == "" && o.opt.Name == "_" {
		o.opt.Name = ""
	}
	if o.noClient || len(o.opt.Endpoints) > 0 {
		return
	}
	if m.Endpoint != "" {
		o.opt.Endpoints = []string{m.Endpoint}
	}
	if o.access.CACert == "" && o.access.Cert == "" {
		o.access.CACert, o.access.Cert, o.access.Key = m.CACert, m.Cert, m.Key
	}
}

// command returns the command that collects a found member.
func (o *collectOptions) command(m *find.Member) shell.Command {
	c := shell.Format("etcd-medic collect -o {} --data-dir {}", o.opt.Out, m.DataDir)
	for _, f := range [][2]string{{"--wal-dir", m.WALDir}, {"--endpoints", m.Endpoint}, {"--cacert", m.CACert},
		{"--cert", m.Cert}, {"--key", m.Key}} {
		if f[1] != "" && (f[0] != "--endpoints" || !o.noClient) {
			c = c.With(f[0], f[1])
		}
	}
	return c
}

func (o *collectOptions) show(m *collect.Manifest) error {
	if o.format == render.JSON {
		enc := json.NewEncoder(render.SafeJSONWriter(o.io.Out))
		enc.SetIndent("", "  ")
		return enc.Encode(m)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: member %s of cluster %s, log entries %d to %d, database up to %d\n", o.opt.Out, m.MemberID,
		m.ClusterID, m.FirstIndex, m.LastIndex, m.ConsistentIndex)
	for _, p := range m.Proven {
		fmt.Fprintf(&b, "  proven    %s\n", p)
	}
	for _, l := range m.LeftOut {
		fmt.Fprintf(&b, "  left out  %s: %s\n", l.File, l.Why)
	}
	for _, n := range m.Notes {
		fmt.Fprintf(&b, "  note      %s\n", n)
	}
	fmt.Fprintf(&b, "next: collect the other members, if there are any, then %s\n",
		shell.Format("etcd-medic diagnose {} <OTHERS>", shell.Operand(o.opt.Out)))
	_, err := o.io.Out.Write([]byte(render.Safe(b.String())))
	return err
}

// hosts prints the command for each member, or runs them.
func (o *collectOptions) hosts(ctx context.Context) error {
	o.access.Skipped = o.io.skipped
	hosts, err := collect.Hosts(ctx, o.endpoints, o.access, o.remote...)
	if err != nil {
		return err
	}
	if o.format == render.JSON {
		enc := json.NewEncoder(render.SafeJSONWriter(o.io.Out))
		enc.SetIndent("", "  ")
		if err := enc.Encode(hosts); err != nil {
			return err
		}
	}
	var errs []error
	for _, h := range hosts {
		if o.format == render.Table {
			_, _ = fmt.Fprintln(o.io.Out, h.Command)
		}
		if o.yes {
			errs = append(errs, o.fetch(ctx, &h))
		}
	}
	return errors.Join(errs...)
}

// fetch runs the command of one host: ssh gets an argument list, without a shell in between.
func (o *collectOptions) fetch(ctx context.Context, h *collect.Host) (err error) {
	if h.Host == collect.UnknownHost {
		return fmt.Errorf("%s: no URL of it leads to another host; put its host in place of %s in the printed command",
			h.Member, collect.UnknownHost)
	}
	f, err := os.OpenFile(h.File, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "ssh", "--", h.Host, h.Remote.String())
	cmd.Stdout, cmd.Stderr = f, o.io.Err
	err = errors.Join(cmd.Run(), f.Close())
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", h.Host, err), os.Remove(h.File))
	}
	return nil
}

// skipped says why an endpoint was passed over.
func (s *Streams) skipped(err error) { s.notef("passed over: %v", err) }

// warnf writes a warning to stderr.
func (s *Streams) warnf(format string, args ...any) { s.remark("warning: ", format, args...) }

// notef writes a remark to stderr.
func (s *Streams) notef(format string, args ...any) { s.remark("note: ", format, args...) }

// remark wraps a text for the terminal at Err.
func (s *Streams) remark(kind, format string, args ...any) {
	s.clearStatus()
	_, _ = fmt.Fprintln(s.Err, s.wrapError(shell.OneLine(kind+fmt.Sprintf(format, args...))))
}
