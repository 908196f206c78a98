//go:build !linux

package clustertest

import "syscall"

func processAttributes() *syscall.SysProcAttr { return nil }

func loopbackHost() string { return "127.0.0.1" }
