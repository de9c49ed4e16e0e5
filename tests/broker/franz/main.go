// franz-go: produces five records, reads them in a group. `client BOOTSTRAP`
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// what it measures of every request: from the first byte written to the last one read
type told struct{ client string }

func (t told) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e kgo.BrokerE2E) {
	if e.WriteErr == nil && e.ReadErr == nil {
		fmt.Printf("request {\"software\":\"franz-go\",\"client_id\":%q,\"api_key\":%d,\"took_us\":%d,\"resolution_us\":1,\"request_bytes\":%d,\"response_bytes\":%d}\n",
			t.client, key, e.DurationE2E().Microseconds(), e.BytesWritten, e.BytesRead)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	shop, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]), kgo.ClientID("go-shop"), kgo.WithHooks(told{"go-shop"}), kgo.DefaultProduceTopic("orders"))
	check(err)
	for n := 0; n < 5; n++ {
		check(shop.ProduceSync(ctx, kgo.StringRecord(fmt.Sprintf("go %d", n))).FirstErr())
		fmt.Println("produced=1")
	}
	shop.Close()
	reader, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]), kgo.ClientID("go-billing"), kgo.WithHooks(told{"go-billing"}),
		kgo.ConsumerGroup("billing"), kgo.ConsumeTopics("orders"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	check(err)
	for count := 0; count < 5; {
		fetched := reader.PollFetches(ctx)
		check(fetched.Err())
		count += fetched.NumRecords()
		fmt.Printf("consumed=%d\n", fetched.NumRecords())
	}
	check(reader.CommitUncommittedOffsets(ctx))
	reader.LeaveGroup()
	reader.Close()
}
