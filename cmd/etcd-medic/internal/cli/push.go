package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// pushTimeout bounds how long a Pushgateway may take.
const pushTimeout = 30 * time.Second

func checkPush(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return usagef("as http://HOST:9091/metrics/job/NAME", "--metrics-push: %q is not the URL of a "+
			"Pushgateway", address)
	}
	return nil
}

// pushMetrics replaces the metrics of one group of a Prometheus Pushgateway. The URL contains the group.
func pushMetrics(ctx context.Context, address string, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, pushTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, address, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("--metrics-push: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // read as far as needed
	if resp.StatusCode/100 == 2 {
		return nil
	}
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 500)) // the message after the status, if any
	return fmt.Errorf("--metrics-push: %s: %s %s", address, resp.Status, bytes.TrimSpace(said))
}
