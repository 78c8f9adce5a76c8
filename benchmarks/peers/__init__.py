"""EdgeFL beside Flower: the same model, data and clients, in turns on one machine.

flower_simulation.py   100 simulated clients: updates a second, whole time, memory
flower_deployment.py   a server and five clients that do not train: seconds and bytes a round, memory

environment.py         Flower's own environment, made when it is missing
case.py                what the contenders of a simulation are given; preparing.py makes it
torch_client.py        the models and a client's training in plain PyTorch
bare_loop.py, flower_rounds.py, edgefl_rounds.py   the contenders of the simulation
flower_echo.py, flower_servers.py                  Flower's app, SuperLink and SuperNodes of the deployment
edgefl_echo.py, edgefl_servers.py                  a device that does not train; our coordinator and five of them
processes.py, loopback.py, table.py                what is watched, and how it is printed

What runs in Flower's environment (case, torch_client, bare_loop, flower_rounds, flower_echo) imports nothing of EdgeFL:
arrays go through .npy and .npz files, figures through JSON. `benchmarks.executorch_training` does the same for
ExecuTorch's own training path.
"""
