"""EdgeFL compared with Flower: the same model, data and clients, in turns on one machine.

What runs in Flower's environment (case, torch_client, bare_loop, flower_rounds, flower_echo) imports nothing of EdgeFL:
arrays are exchanged as .npy and .npz files, figures as JSON. `benchmarks.executorch_training` does the same for
ExecuTorch's own training path.

flower_simulation.py  100 simulated clients: updates per second, total time, memory
flower_deployment.py  a server and five clients that do not train: seconds and bytes per round, memory
environment.py        Flower's own environment, made if it is missing
case.py               the input of a simulation, as files
preparing.py          makes the input of a simulation
torch_client.py       the models and a client's training in plain PyTorch
bare_loop.py          the simulation as a bare PyTorch loop
flower_rounds.py      the simulation in Flower
edgefl_rounds.py      the simulation in EdgeFL
flower_echo.py        Flower's app of the deployment
flower_servers.py     Flower's SuperLink and SuperNodes
edgefl_echo.py        a device that does not train
edgefl_servers.py     our coordinator and devices
processes.py          memory and termination of processes
loopback.py           bytes on the loopback interface
table.py              tables and targets
"""
