module franz

go 1.21

require github.com/twmb/franz-go v1.17.1
