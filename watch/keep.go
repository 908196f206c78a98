package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/etcd-medic/etcd-medic/shell"
)

const (
	// saveTimeout bounds the snapshot of one member.
	saveTimeout = 10 * time.Minute
	// maxHashes bounds the number of revisions at which content is compared to find the first difference.
	maxHashes = 24
	// maxMetrics bounds the saved metrics of one member, in bytes.
	maxMetrics = 16 << 20
)

// keep saves the available evidence of a divergence in a new folder: the event, the round that showed it, hashes at
// several revisions, the metrics and the snapshot of every member, and the next steps on the hosts. It saves small
// items first, since they are lost when a member restarts.
func (w *Watcher) keep(ctx context.Context, e *Event, r *Round) (string, error) {
	dir := filepath.Join(w.o.Keep, fmt.Sprintf("%s-%s", e.At.UTC().Format("20060102T150405Z"), e.Kind))
	// the folder for evidence that the user chose
	if err := os.MkdirAll(w.o.Keep, 0o700); err != nil { //nolint:forbidigo // as the comment says
		return dir, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil { //nolint:forbidigo // as above, new
		return dir, err
	}
	errs := []error{saveJSON(dir, "event.json", e), saveJSON(dir, "round.json", seenOf(r)),
		save(dir, "next.txt", nextSteps(r))}
	if r.Revision > 0 {
		errs = append(errs, saveJSON(dir, "hashes.json", w.ask.parting(ctx, r)))
	}
	for i, m := range w.ask.members {
		name := fmt.Sprintf("%d-%s", i+1, memberFile(m.Endpoint()))
		text, err := w.metricsOf(ctx, m)
		if err == nil {
			err = save(dir, name+".metrics.txt", string(text))
		}
		if err != nil && !errors.Is(err, errNoAddress) {
			errs = append(errs, fmt.Errorf("%s: metrics: %w", m.Endpoint(), err))
		}
	}
	for i, m := range w.ask.members {
		ctx, cancel := context.WithTimeout(ctx, saveTimeout)
		name := fmt.Sprintf("%d-%s.db", i+1, memberFile(m.Endpoint()))
		if err := m.Save(ctx, filepath.Join(dir, name)); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.Endpoint(), err))
		}
		cancel()
	}
	return dir, errors.Join(errs...)
}

func (w *Watcher) metricsOf(ctx context.Context, m Member) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, w.o.Timeout)
	defer cancel()
	return m.Metrics(ctx)
}

func memberFile(endpoint string) string {
	return shell.FileName(strings.NewReplacer("http://", "", "https://", "").Replace(endpoint))
}

func saveJSON(dir, name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return save(dir, name, string(shell.AppendSafe(nil, b, true))+"\n")
}

func save(dir, name, text string) error {
	return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) //nolint:forbidigo // in the new folder of keep
}

// seen is the entry of a member in round.json.
type seen struct {
	Endpoint, Name string
	Error          string `json:",omitempty"`
	First, Second  *Status
	Hash           *Hash    `json:",omitempty"`
	Keys           *int64   `json:",omitempty"`
	Auth           *Auth    `json:",omitempty"`
	Alarms         []string `json:",omitempty"`
}

type roundFile struct {
	At       time.Time
	Revision int64
	Members  []seen
}

func seenOf(r *Round) roundFile {
	out := roundFile{At: r.At, Revision: r.Revision}
	for i := range r.Members {
		s := &r.Members[i]
		m := seen{Endpoint: s.Endpoint, Name: s.Name, Hash: s.Hash, Keys: s.Keys, Auth: s.Auth, Alarms: s.Alarms}
		if s.Err != nil {
			m.Error = s.Err.Error()
		} else {
			m.First, m.Second = &s.First, &s.Second
		}
		out.Members = append(out.Members, m)
	}
	return out
}

// parting says where contents begin to differ, according to HashKV.
type parting struct {
	// Equal is the highest revision at which all hashes were equal, Differ the lowest at which they differed; 0 if
	// there is none.
	Equal, Differ int64
	// Note says why the search ended early.
	Note string `json:",omitempty"`
	At   []hashesAt
}

type hashesAt struct {
	Revision int64
	Hashes   map[string]Hash
}

// parting compares hashes at several revisions between the compared one and the compact revision, by bisection.
func (a *asker) parting(ctx context.Context, r *Round) *parting {
	p := &parting{}
	low, high := int64(0), r.Revision
	for i := range r.Members {
		if h := r.Members[i].Hash; h != nil {
			low = max(low, h.Compact)
		}
	}
	for rev, n := high, 0; n < maxHashes && ctx.Err() == nil; n++ {
		at, compact := a.hashes(ctx, r, rev)
		p.At = append(p.At, hashesAt{rev, at})
		if len(at) < 2 || !compact {
			p.Note = fmt.Sprintf("at revision %d fewer than two members have a comparable hash", rev)
			return p
		}
		if sameHashes(at) {
			p.Equal, low = rev, rev
		} else {
			p.Differ, high = rev, rev
		}
		if p.Differ == 0 || high-low <= 1 {
			return p
		}
		rev = low + (high-low)/2
	}
	p.Note = "the search was interrupted"
	return p
}

// hashes asks the members that the round compared. compact is false if they are compacted to different revisions.
func (a *asker) hashes(ctx context.Context, r *Round, rev int64) (out map[string]Hash, compact bool) {
	out, compact = map[string]Hash{}, true
	compacted := int64(-1)
	for i, m := range a.members {
		if r.Members[i].Hash == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, a.timeout)
		h, err := m.HashKV(ctx, rev)
		cancel()
		if err != nil {
			continue
		}
		compact = compact && (compacted < 0 || compacted == h.Compact)
		compacted = h.Compact
		out[r.Members[i].Name] = h
	}
	return out, compact
}

func sameHashes(at map[string]Hash) bool {
	var one *Hash
	for _, h := range at {
		if one != nil && h.Hash != one.Hash {
			return false
		}
		one = &h
	}
	return true
}

// nextSteps returns the commands that collect the logs, which are not available over the network.
func nextSteps(r *Round) string {
	var b, files strings.Builder
	b.WriteString("# This data came over the network. The members' logs show which entry made them diverge, and " +
		"which " +
		"member is right.\n" +
		"# Do not restart or remove a member before its log is collected.\n")
	for i := range r.Members {
		s := &r.Members[i]
		file := shell.FileName(s.Name) + ".tar.zst"
		remote := shell.Format("etcd-medic collect --yes --name {} -o -", shell.FileName(s.Name))
		host := "HOST"
		if u, err := url.Parse(s.Endpoint); err == nil && u.Hostname() != "" {
			host = u.Hostname()
		}
		if isLocal(host) {
			fmt.Fprintf(&b, "%s\n", shell.Format("etcd-medic collect --yes --name {} -o {}", shell.FileName(s.Name),
				file))
		} else {
			fmt.Fprintf(&b, "%s\n", shell.Format("ssh -- {} {} > {}", host, remote.String(), file))
		}
		fmt.Fprintf(&files, " %s", shell.Quote(file))
	}
	fmt.Fprintf(&b, "etcd-medic diagnose%s\n", files.String())
	return b.String()
}

// isLocal reports whether an endpoint's host is the one on which watch runs.
func isLocal(host string) bool {
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}
