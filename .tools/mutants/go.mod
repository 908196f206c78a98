module github.com/etcd-medic/etcd-medic/tools/mutants

go 1.26.0
