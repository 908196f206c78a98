package watch

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/etcd-medic/etcd-medic/shell"
)

// Metrics are the metrics for Prometheus.
type Metrics struct {
	registry                                                              *prometheus.Registry
	up, revision, applied, term, size, inUse, auth, keys, leader, learner *prometheus.GaugeVec
	alarm, diverged                                                       *prometheus.GaugeVec
	events                                                                *prometheus.CounterVec
	compared                                                              *prometheus.GaugeVec
	rounds                                                                prometheus.Counter
	errors                                                                *prometheus.CounterVec
	atRevision                                                            prometheus.Gauge
}

// namespace is the prefix of every name.
const namespace = "etcd_medic_watch"

// NewMetrics returns metrics in a new registry.
func NewMetrics() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
		m.registry.MustRegister(g)
		return g
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	m.up = gauge("member_up", "1 if the member answered in the last round.", "endpoint")
	m.revision = gauge("member_revision", "Revision of the member's key space.", "endpoint", "member")
	m.applied = gauge("member_raft_applied_index", "Raft index that the member has applied.", "endpoint", "member")
	m.term = gauge("member_raft_term", "Raft term of the member.", "endpoint", "member")
	m.leader = gauge("member_is_leader", "1 if the member is the leader.", "endpoint", "member")
	m.learner = gauge("member_is_learner", "1 if the member is a learner.", "endpoint", "member")
	m.size = gauge("member_db_size_bytes", "Size of the member's database file.", "endpoint", "member")
	m.inUse = gauge("member_db_size_in_use_bytes", "Bytes in use of the member's database file.", "endpoint", "member")
	m.auth = gauge("member_auth_revision", "Auth revision of the member.", "endpoint", "member")
	m.keys = gauge("member_keys", "Number of keys of the member at the compared revision.", "endpoint", "member")
	m.alarm = gauge("member_alarm", "1 for every alarm of the member.", "endpoint", "member", "alarm")
	m.diverged = gauge("divergence", "1 while members differ, by what differs.", "kind")
	m.compared = gauge("last_compared_timestamp_seconds", "When all members were last compared; 0 if never.", "kind")
	// Without a value, no alert would be raised for what is never compared.
	for _, k := range []Kind{KindHash, KindAuth} {
		m.compared.WithLabelValues(string(k)).Set(0)
	}
	m.events = counter("divergences_total", "Divergences that were raised.", "kind")
	m.errors = counter("member_errors_total", "Rounds in which the member did not answer.", "endpoint")
	m.rounds = prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "rounds_total",
		Help: "Rounds that were made."})
	m.atRevision = prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: "compared_revision",
		Help: "Revision at which content was last compared."})
	m.registry.MustRegister(m.rounds, m.atRevision)
	for _, k := range Kinds {
		m.diverged.WithLabelValues(string(k)).Set(0)
		m.events.WithLabelValues(string(k))
	}
	return m
}

// round updates the metrics from a round.
func (m *Metrics) round(r *Round, events []Event, raised map[Kind]Event) {
	m.rounds.Inc()
	perMember := []*prometheus.GaugeVec{m.revision, m.applied, m.term, m.leader, m.learner, m.size, m.inUse, m.alarm}
	for i := range r.Members {
		s := &r.Members[i]
		for _, g := range perMember {
			g.DeletePartialMatch(prometheus.Labels{"endpoint": s.Endpoint})
		}
		if s.Err != nil {
			// the values of an earlier round are no longer valid
			for _, g := range []*prometheus.GaugeVec{m.auth, m.keys} {
				g.DeletePartialMatch(prometheus.Labels{"endpoint": s.Endpoint})
			}
			m.up.WithLabelValues(s.Endpoint).Set(0)
			m.errors.WithLabelValues(s.Endpoint).Inc()
			continue
		}
		m.up.WithLabelValues(s.Endpoint).Set(1)
		m.member(s)
	}
	if r.compared() && r.Revision > 0 {
		m.atRevision.Set(float64(r.Revision))
		m.compared.WithLabelValues(string(KindHash)).Set(float64(r.At.Unix()))
	}
	if !slices.ContainsFunc(r.Members, func(s Seen) bool { return s.Auth == nil && !s.First.Learner }) {
		m.compared.WithLabelValues(string(KindAuth)).Set(float64(r.At.Unix()))
	}
	for _, k := range Kinds {
		_, is := raised[k]
		m.diverged.WithLabelValues(string(k)).Set(truth(is))
	}
	for _, e := range events {
		if !e.Over {
			m.events.WithLabelValues(string(e.Kind)).Inc()
		}
	}
}

func (m *Metrics) member(s *Seen) {
	at := []string{s.Endpoint, s.Name}
	st := &s.Second
	m.revision.WithLabelValues(at...).Set(float64(st.Revision))
	m.applied.WithLabelValues(at...).Set(float64(st.Applied))
	m.term.WithLabelValues(at...).Set(float64(st.Term))
	m.leader.WithLabelValues(at...).Set(truth(st.Leader == st.ID))
	m.learner.WithLabelValues(at...).Set(truth(st.Learner))
	m.size.WithLabelValues(at...).Set(float64(st.DBSize))
	m.inUse.WithLabelValues(at...).Set(float64(st.InUse))
	// These keep their values in rounds that do not ask for them, but not under an earlier name.
	here := prometheus.Labels{"endpoint": s.Endpoint}
	if s.Auth != nil {
		m.auth.DeletePartialMatch(here)
		m.auth.WithLabelValues(at...).Set(float64(s.Auth.Revision))
	}
	if s.Keys != nil {
		m.keys.DeletePartialMatch(here)
		m.keys.WithLabelValues(at...).Set(float64(*s.Keys))
	}
	for _, a := range s.Alarms {
		m.alarm.WithLabelValues(s.Endpoint, s.Name, a).Set(1)
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Handler serves /metrics, /healthz (503 if rounds are overdue) and /divergence (the open divergences as JSON).
func (w *Watcher) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(w.o.Metrics.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(rw http.ResponseWriter, _ *http.Request) {
		if !w.Alive() {
			http.Error(rw, "no round was made recently", http.StatusServiceUnavailable)
			return
		}
		_, _ = rw.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /divergence", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		if b, err := json.Marshal(w.Open()); err == nil {
			_, _ = rw.Write(append(shell.AppendSafe(nil, b, true), '\n'))
		}
	})
	return mux
}
