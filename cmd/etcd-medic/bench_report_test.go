//go:build bench

package main_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// The data: 500,000 entries in 0.55 GB of segments; 1,000,000 revisions of 200,000 keys in 1.4 GB; three members of
// that database whose logs hold the last half of the entries, equal and with one that lacks a write, so that all of its
// later revisions differ.
var (
	logSize = clustertest.Synth{Members: 1, Entries: 500_000, Keys: 100_000, Value: 1000, Allocated: true}
	dbSize  = clustertest.Synth{Members: 1, Entries: 1_000_000, Keys: 200_000, Value: 1100, Allocated: true}
	setSize = clustertest.Synth{Members: 3, Entries: 1_000_000, Keys: 200_000, Value: 1100, Purged: 490_000,
		Allocated: true}
	// largeSize is 8 GB with 20,000,000 revisions, and a log of 4 GB.
	largeSize = clustertest.Synth{Members: 1, Entries: 20_000_000, Keys: 2_000_000, Value: 280, Purged: 8_000_000,
		Allocated: true}
)

// task is one thing to measure.
type task struct {
	what string
	// own are the arguments of this program, peer the command line of the tool that does the same or less; nil for
	// none.
	own  []string
	peer []string
	// writes is a file that must not be there before.
	writes string
	// read are the files or folders that the work reads; floor is the checksum that it cannot do without.
	read  []string
	floor string
	// most is how many floors it may take, 0 where none is promised; within is an absolute bound.
	most   float64
	within time.Duration
	// memory bounds the anonymous memory in bytes, 0 for none.
	memory int64
	// like are the arguments for members with equal content, of which this takes times as long at most.
	like  []string
	times float64
}

// row is a task with its figures.
type row struct {
	task
	bytes            int64
	own, peer, floor measured
	plain, like      measured
}

// group is a test of its own, so that its data is removed before the next one: what the system's page cache cannot hold is
// measured at the speed of the disk.
type group struct {
	name  string
	tasks func(*testing.T) []task
}

// TestBenchReport measures everything and writes the document.
func TestBenchReport(t *testing.T) {
	if *benchOut == "" {
		t.Fatal("run make bench: -out, -medic and -peers are needed")
	}
	groups := []group{{"log", logTasks}, {"db", dbTasks}, {"member", memberTasks}, {"set", setTasks},
		{"report", reportTasks}}
	if *benchLarge {
		groups = append(groups, group{"large", largeTasks})
	}
	var rows []row
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, k := range g.tasks(t) {
				rows = append(rows, measure(t, k))
			}
		})
	}
	var points []point
	t.Run("growth", func(t *testing.T) { points = growth(t) })
	if t.Failed() {
		return
	}
	plot := strings.TrimSuffix(*benchOut, ".md") + ".svg"
	text := document(rows, points, filepath.Base(plot)) // it names the commit, before anything is written into the tree
	write(t, plot, drawGrowth(points))
	write(t, *benchOut, text)
	for _, r := range rows {
		if p := r.promise(); p != "" && !r.kept() {
			t.Logf("not reached: %s: %s", r.what, p)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func measure(t *testing.T, k task) row {
	t.Helper()
	files := filesOf(t, k.read...)
	ps := []process{{bin: *benchMedic, args: k.own, findings: true, writes: k.writes}, floorProcess(k.floor, files),
		floorProcess(floorRead, files)}
	if k.peer != nil {
		ps = append(ps, process{bin: k.peer[0], args: k.peer[1:]})
	}
	if k.like != nil {
		ps = append(ps, process{bin: *benchMedic, args: k.like, findings: true})
	}
	m := rounds(t, ps...)
	r := row{task: k, bytes: bytesOf(t, k.read...), own: m[0], floor: m[1], plain: m[2]}
	if k.peer != nil {
		r.peer = m[3]
	}
	if k.like != nil {
		r.like = m[len(m)-1]
	}
	t.Logf("%s: own %s, floor %s", k.what, r.own.took(), r.floor.took())
	return r
}

func peerTool(name string) string { return filepath.Join(*benchPeers, name) }

func logTasks(t *testing.T) []task {
	node := filepath.Join(t.TempDir(), "node1")
	if err := os.MkdirAll(filepath.Join(node, "member", "snap"), 0o700); err != nil {
		t.Fatal(err)
	}
	scaled(logSize).WriteWAL(t, filepath.Join(node, "member", "wal"), 0)
	peer := []string{peerTool("etcd-dump-logs"), "--start-index=1", node}
	return []task{
		{what: "`dumplog --stats`: every CRC checked, every entry decoded", own: []string{"dumplog", "--stats", node},
			peer: peer, read: []string{node}, floor: floorCRC},
		{what: "`dumplog -w jsonl`", own: []string{"dumplog", "-w", "jsonl", node}, peer: peer, read: []string{node},
			floor: floorCRC},
	}
}

func dbTasks(t *testing.T) []task {
	dir := t.TempDir()
	db, backup := filepath.Join(dir, "db"), filepath.Join(dir, "backup.db")
	scaled(dbSize).WriteDB(t, db)
	theirs := copyOf(t, db) // the peers open it read-write
	copyTo(t, db, backup)
	appendTrailer(t, backup)
	sameHash(t, theirs, db)
	status := fmt.Sprintf("%s snapshot status %s && sha256sum %s", peerTool("etcdutl-3.6"), theirs, backup)
	return []task{
		{what: "`dumpdb --hashkv`, equal result", own: []string{"dumpdb", db, "--hashkv"},
			peer: []string{peerTool("etcdutl-3.6"), "hashkv", theirs}, read: []string{db}, floor: floorCRC},
		{what: "`dumpdb key --values -w jsonl`", own: []string{"dumpdb", db, "key", "--values", "-w", "jsonl"},
			peer: []string{peerTool("etcd-dump-db"), "iterate-bucket", theirs, "key", "--decode"}, read: []string{db},
			floor: floorCRC},
		{what: "`verify`: trailer, pages, buckets, MVCC", own: []string{"verify", "-q", backup},
			peer: []string{"/bin/sh", "-c", status}, read: []string{backup}, floor: floorSHA256},
	}
}

func memberTasks(t *testing.T) []task {
	one := scaled(setSize)
	one.Members = 1
	dir := one.Write(t, t.TempDir())[0]
	return []task{{what: "`inspect` of a whole member", own: []string{"inspect", dir}, read: []string{dir},
		floor: floorSHA256, within: 2 * time.Second}}
}

func setTasks(t *testing.T) []task {
	s := scaled(setSize)
	equal := s.Write(t, t.TempDir())
	s.Skip = map[int]map[int]bool{1: {s.Entries * 7 / 10: true}}
	apart := []string{equal[0], s.WriteMember(t, t.TempDir(), 1), equal[2]}
	var hashes []string
	for _, dir := range equal {
		hashes = append(hashes, peerTool("etcdutl-3.6")+" hashkv "+
			copyOf(t, filepath.Join(dir, "member", "snap", "db")))
	}
	peer := []string{"/bin/sh", "-c", strings.Join(hashes, " && ")}
	diagnose := func(dirs []string, flags ...string) []string {
		return append(append([]string{"diagnose"}, flags...), dirs...)
	}
	return []task{
		{what: "`diagnose` of three equal members", own: diagnose(equal), peer: peer, read: equal, floor: floorCRC,
			most: 3},
		{what: "`diagnose -w json` of the same: with sha256 of all inputs", own: diagnose(equal, "-w", "json"),
			peer: peer,
			read: equal, floor: floorSHA256, most: 1.3},
		{what: "`diagnose`, one member lacks a write", own: diagnose(apart), peer: peer, read: apart, floor: floorCRC,
			like: diagnose(equal), times: 1.3},
		{what: "`diagnose -w json`, one member lacks a write", own: diagnose(apart, "-w", "json"), peer: peer,
			read:  apart,
			floor: floorSHA256, like: diagnose(equal, "-w", "json"), times: 1.3},
	}
}

// reportTasks write the page of two members of which one lacks a write, so that the revisions of 100,000 keys differ.
func reportTasks(t *testing.T) []task {
	s := scaled(setSize)
	s.Members, s.Skip = 2, map[int]map[int]bool{1: {s.Entries * 9 / 10: true}}
	dirs := s.Write(t, t.TempDir())
	page := filepath.Join(t.TempDir(), "report.html")
	return []task{{what: "`report` of two members, 100,000 keys differ",
		own: append([]string{"report", "-o", page}, dirs...), writes: page, read: dirs, floor: floorSHA256}}
}

func largeTasks(t *testing.T) []task {
	dir := scaled(largeSize).Write(t, t.TempDir())[0]
	const most = 2 << 30
	return []task{
		{what: "large: `dumplog --stats`", own: []string{"dumplog", "--stats", dir},
			read:  []string{dir + "/member/wal"},
			floor: floorCRC, memory: most},
		{what: "large: `inspect --max-memory 2GiB`", own: []string{"inspect", "--max-memory", "2GiB", dir},
			read: []string{dir}, floor: floorSHA256, memory: most},
		{what: "large: `diagnose --max-memory 2GiB`", own: []string{"diagnose", "--max-memory", "2GiB", dir},
			read: []string{dir}, floor: floorCRC, memory: most},
	}
}

// copyOf copies a file into a folder of its own.
func copyOf(t *testing.T, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "db")
	copyTo(t, path, to)
	return to
}

func copyTo(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// appendTrailer makes a backup of a database as snapshot save does.
func appendTrailer(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.New()
	if _, err = io.Copy(h, f); err == nil {
		_, err = f.Write(h.Sum(nil))
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		t.Fatal(err)
	}
}

// sameHash compares both hashes: a fast wrong answer is none.
func sameHash(t *testing.T, theirDB, db string) {
	t.Helper()
	hash := func(bin string, args ...string) (h uint32) {
		out, err := exec.Command(bin, args...).Output()
		var doc struct{ Hash uint32 }
		if err == nil {
			err = json.Unmarshal(out, &doc)
		}
		if err != nil || doc.Hash == 0 {
			t.Fatalf("%s: %v: %s", bin, err, out)
		}
		return doc.Hash
	}
	theirs := hash(peerTool("etcdutl-3.6"), "hashkv", theirDB, "-w", "json")
	if own := hash(*benchMedic, "dumpdb", db, "--hashkv", "-w", "jsonl"); own != theirs {
		t.Fatalf("hash %d, etcdutl says %d", own, theirs)
	}
}

// point is one size on the plot.
type point struct {
	entries int
	bytes   int64
	runs    measured
}

// growth measures a diagnosis of three members at several sizes.
func growth(t *testing.T) (points []point) {
	for _, percent := range []int{12, 25, 50, 100} {
		s := scaled(setSize)
		s.Entries, s.Keys, s.Purged = s.Entries*percent/100, max(s.Keys*percent/100, 1), s.Purged*percent/100
		t.Run(strconv.Itoa(percent), func(t *testing.T) {
			dirs := s.Write(t, t.TempDir())
			m := rounds(t, process{bin: *benchMedic, args: append([]string{"diagnose"}, dirs...), findings: true})
			points = append(points, point{s.Entries, bytesOf(t, dirs...), m[0]})
		})
	}
	return points
}

// promise says what the figures are held to, "" for nothing.
func (r *row) promise() string {
	switch {
	case r.most > 0:
		return fmt.Sprintf("at most %.1f × %s", r.most, r.task.floor)
	case r.within > 0:
		return fmt.Sprintf("at most %s", r.within)
	case r.memory > 0:
		return fmt.Sprintf("at most %.0f GB of memory", float64(r.memory)/(1<<30))
	case r.times > 0:
		return fmt.Sprintf("at most %.1f × equal members, measured %.2f", r.times, ratio(r.own, r.like))
	}
	return ""
}

// kept reports whether they are.
func (r *row) kept() bool {
	return (r.most == 0 || ratio(r.own, r.floor) <= r.most) && (r.within == 0 || r.own.took() <= r.within) &&
		(r.memory == 0 || r.own.anon() <= r.memory) && (r.times == 0 || ratio(r.own, r.like) <= r.times)
}

func document(rows []row, points []point, plot string) string {
	var b strings.Builder
	b.WriteString("# Benchmarks\n\n<!-- Written by `make bench`. -->\n\n")
	fmt.Fprintf(&b, "Measured on %s with %d cores, %s, at commit %s.\n", runtime.GOOS+"/"+runtime.GOARCH,
		runtime.NumCPU(), runtime.Version(), commit())
	fmt.Fprintf(&b, "Whole processes take turns on the same files: this program, the peer and the floor, %s "+
		"after one that warms the cache. Output goes to the null device. Times and ratios are medians; memory is the "+
		"highest anonymous memory seen. The floor is what the same cores need to compute the checksum that the work "+
		"cannot do without (CRC32C of log and pages, or SHA-256 where a digest is asked for) over the same bytes; "+
		"reading alone is given next to it.\n\n", plural.Of(*benchRounds, "round", "rounds"))
	b.WriteString("| what | data | this program | memory | peer | times faster | floor | × floor | read alone | wanted |\n" +
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, r := range rows {
		peer, faster := "", ""
		if r.peer != nil {
			peer = fmt.Sprintf("%s %s", peerName(r.task.peer), seconds(r.peer.took()))
			faster = fmt.Sprintf("%.1f", ratio(r.peer, r.own))
		}
		wanted := r.promise()
		if wanted != "" {
			wanted += map[bool]string{true: ": yes", false: ": no"}[r.kept()]
		}
		fmt.Fprintf(&b, "| %s | %.2f GB | %s (%s CPU) | %d MB | %s | %s | %s %s | %.1f | %s | %s |\n", r.what,
			float64(r.bytes)/1e9, seconds(r.own.took()), seconds(r.own.cpu()), r.own.anon()/1e6, peer, faster,
			r.task.floor, seconds(r.floor.took()), ratio(r.own, r.floor), seconds(r.plain.took()), wanted)
	}
	fmt.Fprintf(&b, "\n## Growth\n\n`diagnose` of three equal members, by the number of entries.\n\n![growth](%s)\n\n",
		plot)
	b.WriteString("| entries | data | time | CPU | memory |\n| --- | --- | --- | --- | --- |\n")
	for _, p := range points {
		fmt.Fprintf(&b, "| %d | %.2f GB | %s | %s | %d MB |\n", p.entries, float64(p.bytes)/1e9, seconds(p.runs.took()),
			seconds(p.runs.cpu()), p.runs.anon()/1e6)
	}
	b.WriteString("\n## Do it yourself\n\n```\nmake bench                # about 20 minutes, 12 GB of disk\n" +
		"make bench SCALE=10       # a tenth of the data\nmake bench LARGE=1        # also 8 GB with 20,000,000 " +
		"revisions\n```\n")
	return b.String()
}

func peerName(peer []string) string {
	if strings.HasSuffix(peer[0], "/sh") {
		if strings.Contains(peer[2], "sha256sum") {
			return "etcdutl snapshot status, then sha256sum"
		}
		return "etcdutl hashkv of each database"
	}
	name := filepath.Base(peer[0])
	if strings.HasPrefix(name, "etcdutl") {
		return "etcdutl " + peer[1]
	}
	return name
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// commit names the commit that was measured.
func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
