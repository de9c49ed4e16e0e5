module golang

go 1.24

require (
	github.com/IBM/sarama v1.46.0
	github.com/twmb/franz-go v1.20.0
	github.com/twmb/franz-go/pkg/kmsg v1.12.0
)
