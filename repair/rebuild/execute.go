package rebuild

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// run executes entries until the target is reached. It refuses at the first missing index.
func (e *engine) run(ctx context.Context) error {
	b := e.b
	end := b.commit
	if b.stop > 0 {
		end = b.stop
	}
	for entry, err := range replay.Log(ctx, b.logs) {
		switch {
		case err != nil:
			return err
		case entry.Index <= e.at.Index:
			continue
		case entry.Index > end:
			return e.reached(end)
		case entry.Index != e.at.Index+1:
			return b.gapUpTo(entry.Index)
		}
		done, err := e.entry(ctx, &entry)
		if done || err != nil {
			return err
		}
		if e.n++; e.n < datadir.TxRecords && e.size < datadir.TxBytes {
			continue
		}
		b.say("%d entries, revision %d", b.res.Entries, e.m.Revision())
		if err := errors.Join(e.commit(), e.begin()); err != nil {
			return err
		}
	}
	return e.reached(end)
}

// reached refuses if the log ended before the target.
func (e *engine) reached(end uint64) error {
	switch to := e.b.o.To; {
	case to.Revision > 0 && e.m.Revision() < to.Revision:
		return refuse("the committed log ends at entry %d and revision %d, before revision %d", e.at.Index,
			e.m.Revision(), to.Revision)
	case to.Revision == 0 && e.at.Index < end:
		return e.b.gapUpTo(end)
	}
	return nil
}

// entry executes one entry; done is true if it is after the target.
func (e *engine) entry(ctx context.Context, x *replay.Entry) (done bool, err error) {
	b := e.b
	skip := slices.Contains(b.o.Skip, x.Index)
	if (x.Err != nil || x.Req.Kind == dumplog.KindUnknown || x.Req.ConfChangeV2 != nil) && !skip {
		return false, refuse("entry %d/%d cannot be executed (%s); --skip %d leaves it out", x.Term, x.Index,
			undecodable(x), x.Index)
	}
	st := e.m.Prepare(*x)
	if err := e.decide(ctx, e.m, &st); err != nil {
		return false, err
	}
	if r := b.o.To.Revision; r > 0 && (e.m.Revision() >= r || st.Writes() > 0 && e.m.Revision()+1 > r) && b.stop == 0 {
		return true, nil
	}
	e.at.Index, e.at.Term = x.Index, x.Term
	b.res.Entries++
	if x.Disputed {
		e.disputed++
	}
	if e.look != nil {
		e.look(&st)
	}
	if e.shadow != nil {
		return false, e.skipping(ctx, &st, skip)
	}
	_, err = e.apply(&st)
	return false, err
}

func undecodable(x *replay.Entry) string {
	switch {
	case x.Err != nil:
		return x.Err.Error()
	case x.Req.ConfChangeV2 != nil:
		return "a ConfChangeV2, which no etcd executes"
	}
	return "no known request"
}

// apply executes a step and writes its effect.
func (e *engine) apply(st *replay.Step) (replay.Outcome, error) {
	res := e.b.res
	if !st.Sure {
		res.DoubtfulCount++
		if len(res.Doubtful) < maxListed {
			l := line(&st.Entry)
			l.Why = "taken as " + outcome(st.State, st.Reason) + "; patch releases or members may differ here"
			res.Doubtful = append(res.Doubtful, l)
		}
	}
	o, changes := e.m.Apply(*st)
	for i := range changes {
		if err := e.put(&changes[i]); err != nil {
			return o, err
		}
	}
	res.Records += int64(len(changes))
	switch o.State {
	case replay.Applied:
		res.Applied++
	case replay.Refused:
		res.Refused++
		return o, nil
	}
	return o, e.smallRows().applyEntry(&st.Entry, o)
}

// line describes an entry without values.
func line(x *replay.Entry) EntryLine {
	return EntryLine{Index: x.Index, Term: x.Term, What: x.Describe()}
}

func outcome(s replay.State, r replay.Reason) string {
	if r != replay.ReasonNone {
		return s.String() + " (" + string(r) + ")"
	}
	return s.String()
}

// put writes one record of bucket key.
func (e *engine) put(c *replay.Change) error {
	at := c.Rev.Bytes()
	kv := mvccpb.KeyValue{Key: []byte(c.Key)}
	if c.Delete {
		at = append(at, 't')
	} else {
		kv.CreateRevision, kv.ModRevision, kv.Version, kv.Lease, kv.Value = c.Create, c.Rev.Main, c.Version, c.Lease,
			c.Value
		if c.From != (dumpdb.Rev{}) {
			v, ok := e.value(c.Key, c.From)
			if !ok {
				return fmt.Errorf("entry %d keeps the value of revision %s, which is not there", e.at.Index, c.From)
			}
			kv.Value = v
		}
	}
	n := kv.Size()
	e.size += n
	if cap(e.record)-len(e.record) < n {
		e.record = make([]byte, 0, max(1<<20, n))
	}
	buf := e.record[len(e.record) : len(e.record)+n]
	if _, err := kv.MarshalToSizedBuffer(buf); err != nil {
		return err
	}
	e.record = e.record[:len(e.record)+n]
	return e.key.Put(at, buf[:n:n])
}
