package evidence

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"
)

// reachTime bounds making a connection: a host that is down does not refuse one. A server has cfg.DialTimeout for its
// first answer on it.
const reachTime = 3 * time.Second

// Probe finds out soon whether a server answers at an endpoint. A client of etcd waits for one until the time of its
// question is over. The error says why none answers.
func (a *Access) Probe(ctx context.Context, endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || !isEndpoint(endpoint) {
		return notAnEndpoint(endpoint, err)
	}
	cfg, err := a.config(u)
	if err != nil {
		return err
	}
	d := net.Dialer{Timeout: reachTime}
	c, err := d.DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	answer, cancel := context.WithTimeout(ctx, cfg.DialTimeout)
	defer cancel()
	if cfg.TLS != nil {
		own := cfg.TLS.Clone()
		own.ServerName = u.Hostname()
		err = tls.Client(c, own).HandshakeContext(answer)
	} else {
		err = greeting(answer, c, u.Host, cfg.DialTimeout)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && answer.Err() != nil, errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%s takes connections and does not answer within %v: is the server stopped?", u.Host,
			cfg.DialTimeout)
	}
	return err
}

func notAnEndpoint(where string, err error) error {
	return &SourceError{Where: where, Found: "no endpoint", Expected: "http(s)://HOST:PORT of a member's client URL",
		Err: err}
}
