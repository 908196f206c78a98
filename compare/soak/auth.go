package soak

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// enableAuth founds users and roles and turns auth on.
func (h *History) enableAuth() {
	ctx, cancel := context.WithTimeout(context.Background(), clustertest.Patience)
	defer cancel()
	cli := h.c.Client(0)
	prefix := func(role, p string) error {
		_, err := cli.RoleGrantPermission(ctx, role, p, clientv3.GetPrefixRangeEnd(p),
			clientv3.PermissionType(clientv3.PermReadWrite))
		return err
	}
	for _, step := range []func() error{
		func() error { _, err := cli.RoleAdd(ctx, "root"); return err },
		func() error { _, err := cli.UserAdd(ctx, "root", "root secret"); return err },
		func() error { _, err := cli.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := cli.RoleAdd(ctx, "app"); return err },
		func() error { _, err := cli.UserAdd(ctx, "app", "app secret"); return err },
		func() error { _, err := cli.UserGrantRole(ctx, "app", "app"); return err },
		func() error { return prefix("app", "/app/") },
		func() error { return prefix("app", "/registry/") },
		func() error { _, err := cli.AuthEnable(ctx); return err },
	} {
		if err := step(); err != nil {
			h.t.Fatalf("enable auth: %v", err)
		}
	}
	h.authOn = true
	h.c.Login("root", "root secret")
	for i := range h.c.Size() {
		h.c.Client(i)
	}
}

// authWork changes users and roles, and makes requests that are refused.
func (h *History) authWork() {
	n := h.rng.IntN(4)
	user, role := fmt.Sprintf("user%d", n), fmt.Sprintf("role%d", h.rng.IntN(3))
	kind, ext := h.rng.IntN(11), fmt.Sprintf("/ext/%d/", h.rng.IntN(5))
	cli := h.client()
	ctx, cancel := h.context()
	defer cancel()
	var err error
	switch kind {
	case 0, 1:
		_, err = cli.UserAdd(ctx, user, "secret")
	case 2:
		_, err = cli.UserDelete(ctx, user)
	case 3:
		_, err = cli.UserChangePassword(ctx, user, fmt.Sprint("secret", h.next()))
	case 4:
		_, err = cli.RoleAdd(ctx, role)
	case 5:
		_, err = cli.RoleDelete(ctx, role)
	case 6:
		_, err = cli.UserGrantRole(ctx, user, role)
	case 7:
		_, err = cli.UserRevokeRole(ctx, user, role)
	case 8:
		_, err = cli.RoleGrantPermission(ctx, role, ext, clientv3.GetPrefixRangeEnd(ext),
			clientv3.PermissionType(clientv3.PermReadWrite))
	case 9:
		_, err = cli.RoleRevokePermission(ctx, role, ext, clientv3.GetPrefixRangeEnd(ext))
	case 10: // a certificate names this user
		_, err = cli.UserAddWithOptions(ctx, user, "", &clientv3.UserAddOptions{NoPassword: true})
	}
	_ = err // many are refused: that is part of the history
}

// withoutAuth turns auth off for a while.
func (h *History) withoutAuth() {
	ctx, cancel := context.WithTimeout(context.Background(), clustertest.Patience)
	defer cancel()
	_, err := h.c.Client(h.c.Leader()).AuthDisable(ctx)
	h.say("auth is turned off: %v", err)
	if err != nil {
		return
	}
	h.authOn = false
	h.burst(8)
	if _, err = h.c.Client(h.c.Leader()).AuthEnable(ctx); err != nil {
		h.t.Fatalf("turn auth on again: %v", err)
	}
	h.authOn = true
}
