package lab

import "context"

// Status is a member's own status, as operators see it.
type Status struct {
	Name     string
	Revision int64
	Index    uint64
	Leader   bool
	Healthy  bool
	// Ended is the log line with which a stopped member ended.
	Ended string
}

// Statuses asks every member, as etcdctl endpoint status and endpoint health do.
func (c *Cluster) Statuses(ctx context.Context) ([]Status, error) {
	var out []Status
	for i, m := range c.members {
		if _, ended := m.Exited(); ended {
			st := Status{Name: m.Name(), Ended: "its log does not say why"}
			if lines := m.FatalLines(); len(lines) > 0 {
				st.Ended = lines[0]
			}
			out = append(out, st)
			continue
		}
		cli, err := c.Client(i)
		if err != nil {
			return nil, err
		}
		st, err := cli.Status(ctx, m.Endpoint())
		if err != nil {
			return nil, err
		}
		_, err = cli.Get(ctx, "health")
		out = append(out, Status{Name: m.Name(), Revision: st.Header.GetRevision(), Index: st.RaftAppliedIndex,
			Leader: st.Leader == st.Header.GetMemberId(), Healthy: err == nil && len(st.Errors) == 0})
	}
	return out, nil
}
