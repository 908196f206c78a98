package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/collect"
	"github.com/etcd-medic/etcd-medic/compare/evidence/archive"
	"github.com/etcd-medic/etcd-medic/watch"
)

// labWatch is the watch of a lab's cluster. It makes rounds between the parts of the story.
type labWatch struct {
	s *labStory
	w *watch.Watcher
}

const (
	labRound = time.Second
	// labRaised bounds the wait for a divergence to be raised, and to be over.
	labRaised = time.Minute
	// labQuiet is the number of rounds without an event that count as quiet: revisions and auth need two earlier ones.
	labQuiet = 4
)

// watching starts the watch if requested.
func (s *labStory) watching(ctx context.Context) error {
	if !s.o.watch {
		return nil
	}
	var members []watch.Member
	for i := range s.c.DataDirs() {
		members = append(members, watch.Join(fmt.Sprintf("node%d", i+1),
			func(context.Context) (*clientv3.Client, error) { return s.c.Client(i) }))
	}
	w := watch.New(watch.Options{Members: members, Interval: labRound, Timeout: labRaised, BucketInterval: labRound,
		Log: slog.New(slog.DiscardHandler)})
	s.watch = &labWatch{s: s, w: w}
	return s.watch.quiet(ctx, "etcd-medic watch: the members agree")
}

// quiet makes rounds and expects no event.
func (l *labWatch) quiet(ctx context.Context, what string) error {
	var last watch.Round
	for range labQuiet {
		r, events := l.w.Round(ctx)
		if len(events) > 0 {
			return fmt.Errorf("watch raised %s without a cause: %s", events[0].Kind, events[0].Detail)
		}
		last = r
		pause(ctx, labRound)
	}
	l.s.say("   %s (%d rounds, the last at revision %d)", what, labQuiet, last.Revision)
	return ctx.Err()
}

// raised makes rounds until a divergence is raised.
func (l *labWatch) raised(ctx context.Context) error {
	begun := time.Now()
	for time.Since(begun) < labRaised && ctx.Err() == nil {
		for _, e := range first2(l.w.Round(ctx)) {
			if !e.Over {
				l.s.say("   etcd-medic watch raises %s after %.0f s: %s", e.Kind, time.Since(begun).Seconds(), e.Detail)
				return nil
			}
		}
		pause(ctx, labRound)
	}
	return fmt.Errorf("watch raised nothing within %s", labRaised)
}

// over makes rounds until all raised divergences are over.
func (l *labWatch) over(ctx context.Context) error {
	for begun := time.Now(); time.Since(begun) < labRaised && ctx.Err() == nil; pause(ctx, labRound) {
		l.w.Round(ctx)
		if len(l.w.Open()) == 0 {
			return l.quiet(ctx, "etcd-medic watch: what it raised is over, the members agree")
		}
	}
	var open []string
	for _, e := range l.w.Open() {
		open = append(open, string(e.Kind)+": "+e.Detail)
	}
	return fmt.Errorf("watch still says that members differ: %s", strings.Join(open, "; "))
}

func first2(_ watch.Round, events []watch.Event) []watch.Event { return events }

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// collect copies the members while they run and unpacks the archives below dir, as a user would on another host.
func (s *labStory) collect(ctx context.Context, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for i, d := range s.c.DataDirs() {
		name, data, _ := strings.Cut(d, "=")
		file := filepath.Join(s.dir, name+".tar.zst")
		m, err := collect.Run(ctx, collect.Options{DataDir: data, Name: name, Out: file, Version: Version(),
			Dial: func() (*clientv3.Client, error) { return s.c.Client(i) }})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.say("   etcd-medic collect of %s while it runs: log entries %d to %d, database up to %d, proven to belong "+
			"together",
			name, m.FirstIndex, m.LastIndex, m.ConsistentIndex)
		if err := archive.Unpack(ctx, file, dir); err != nil {
			return err
		}
	}
	return nil
}
