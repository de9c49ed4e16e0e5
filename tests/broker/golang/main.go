// Clients in Go at work: `client SOFTWARE PLAY BOOTSTRAP [key=value...]`, with franz-go or sarama.
// The last line is JSON: what was done.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

var (
	said  = map[string]string{}
	did   = map[string]int{}
	guard sync.Mutex
)

func text(key, usual string) string {
	if value, there := said[key]; there {
		return value
	}
	return usual
}

func number(key string, usual int) int {
	value, err := strconv.Atoi(text(key, strconv.Itoa(usual)))
	check(err)
	return value
}

func ms(key string, usual int) time.Duration { return time.Duration(number(key, usual)) * time.Millisecond }

func count(what string) {
	guard.Lock()
	defer guard.Unlock()
	did[what]++
}

func counted(what string, err error) {
	if err != nil {
		what = "failed " + fmt.Sprintf("%T", err)
		fmt.Fprintln(os.Stderr, err)
	}
	count(what)
}

func check(err error) {
	if err != nil {
		counted("", err)
		end()
	}
}

func end() {
	guard.Lock()
	line, _ := json.Marshal(did)
	fmt.Println(string(line))
	os.Exit(0)
}

func topics() []string { return strings.Split(text("topic", "orders"), ",") }

func value() []byte { return []byte(strings.Repeat("x", number("size", 100))) }

func key(n int) string { return text("key", fmt.Sprintf("key %d", n)) }

func main() {
	for _, word := range os.Args[4:] {
		name, value, _ := strings.Cut(word, "=")
		said[name] = value
	}
	time.AfterFunc(ms("life_s", 60)*1000, end)
	plays := map[string]func(string){
		"franz produce": franzProduce, "franz consume": franzConsume, "franz transact": franzTransact,
		"franz look": franzLook, "franz churn": franzChurn, "franz readers": franzReaders,
		"sarama produce": saramaProduce, "sarama consume": saramaConsume, "sarama churn": saramaChurn,
		"sarama storm": saramaStorm, "sarama read": saramaRead, "sarama commit": saramaCommit,
		"sarama ensure": saramaEnsure,
	}
	plays[os.Args[1]+" "+os.Args[2]](os.Args[3])
	end()
}
